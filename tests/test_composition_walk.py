"""Every pair of parts that goes together, from a step of training to one frame at a time."""

from __future__ import annotations

import re
from itertools import chain, product
from typing import get_args

import pytest
import torch

from quadspike import Network, QuadspikeError, composition, load_model, save_model
from quadspike.composition import Parts, objection
from quadspike.data.geometry import Geometry
from quadspike.deploy import check_fold, fold, stream
from quadspike.losses import LOSSES
from quadspike.neurons import NEURONS
from quadspike.norms import NORMS, BatchNorm
from quadspike.ops import BACKENDS
from quadspike.surrogates import SURROGATES, Center
from quadspike.training import Recipe
from quadspike.training.distributed import Workers
from quadspike.training.network import make_network
from quadspike.training.schedule import make_optimizer
from quadspike.training.step import Step
from quadspike.training.trainee import Trainee
from tests.combinations import AIDS, combinations
from tests.conftest import calibrate
from tests.pairwise import covering

CPU = torch.device("cpu")
STEPS, BATCH = 3, 6
PARTS = ("neuron", "norm", "surrogate", "loss", "aid")
CASES = covering([{part: getattr(each, part) for part in PARTS} for each in combinations()])
DRAWN = {"local-zo"}
"""Parts that the CPU's fused path cannot run."""
IN_PARTS = {"im-lif", "mpbn"}
"""Those the fused paths cannot run whole."""
FOR_EACH_STEP = {"im-lif", "glif", "tebn"}
"""Parts that learn something for each step and so know how many there are."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case.values())))
def test_it_trains_is_saved_folds_streams_and_says_what_runs(case, tmp_path):
    network = trained(case)
    says_what_runs(network, case)
    tell_steps_apart(network)
    images = torch.randn(BATCH, 1, 8, 8, dtype=torch.float64)
    calibrate(network, images)
    frames = torch.randn(STEPS, BATCH, 1, 8, 8, dtype=torch.float64)
    with torch.no_grad():
        logits = network(frames)
        assert logits.std(1).min() > 0  # alive, or nothing below would show
        again = load_model(save_model(network, tmp_path / "model.safetensors")).eval()
        assert torch.equal(again(frames), logits)
    folds(network, frames, case)
    streams(network, frames, case)


def trained(case) -> Network:
    """After one step, in which every parameter took part."""
    fixed = {"timesteps": STEPS, "epochs": 2, "batch_size": BATCH, "precision": "fp64"}
    recipe = Recipe("walk", "digits", "cnn", **fixed, **case)
    trainee = Trainee(make_network(recipe, Geometry(1, 8, 10)), recipe).train()
    step = Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), CPU, 1)
    before = {name: p.detach().clone() for name, p in trainee.named_parameters()}
    step(torch.randn(BATCH, 1, 8, 8, dtype=torch.float64), torch.arange(BATCH))
    assert step.count == 1
    for name, parameter in trainee.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
        assert not torch.equal(parameter, before[name]), name
    return trainee.network


@torch.no_grad()
def tell_steps_apart(network):
    """One update hardly moves what is learned for each step: move it so that a swap shows."""
    for name, parameter in network.named_parameters():
        if name.endswith(("conductance_logit", "norm.p")):
            parameter += torch.rand_like(parameter)


def says_what_runs(network, case):
    parted = IN_PARTS & set(case.values())
    for device, fast, refused in (("cpu", "vectorised", DRAWN), ("cuda", "triton", set())):
        alone = refused & set(case.values())
        for layer in network.explain(device, torch.float32):
            assert layer.backend == ("reference" if alone else fast)
            if alone:
                assert layer.reason in reasons(case)
            else:
                assert layer.reason.count("in parts") == len(parted)


def reasons(case):
    kinds = (NEURONS[case["neuron"]], NORMS[case["norm"]], SURROGATES.get(case["surrogate"]))
    said = [kind.only_reference for kind in kinds if kind is not None and kind.only_reference]
    return [*said, *(kind.not_vectorised for kind in kinds[2:] if kind is not None)]


def folds(network, frames, case):
    if case["norm"] == "tebn":
        with pytest.raises(QuadspikeError, match=r"cannot fold layer 'conv1.soma': .*every step"):
            fold(network)
        return
    if case["norm"] == "mpbn" and case["neuron"].startswith("ternary"):
        with pytest.raises(QuadspikeError, match=r"cannot be folded into 'ternary.*one threshold"):
            fold(network)
        return
    folded = fold(network)
    assert not any(isinstance(module, BatchNorm) for module in folded.modules())
    checked = check_fold(network, folded, frames)
    assert checked.unexplained == 0
    assert checked.changed_spikes == 0  # a tie is not to be expected in float64
    with torch.no_grad():
        torch.testing.assert_close(folded(frames), network(frames))


def streams(network, frames, case):
    if case["neuron"] == "im-lif":
        with pytest.raises(QuadspikeError, match=r"cannot be streamed: .*all steps so far"):
            stream(network)
        return
    live = stream(network)
    with torch.no_grad():
        torch.testing.assert_close(torch.stack([*map(live, frames)]), network(frames))
    if FOR_EACH_STEP & set(case.values()):
        with pytest.raises(QuadspikeError, match=f"for {STEPS} steps"):
            live(frames[0])
    else:
        live(frames[0])
    live.reset()
    torch.testing.assert_close(live(frames[0]), network(frames)[0])


def refused():
    """Everything that can be asked for and is refused, with what is said."""
    windows, stages = (None, *get_args(Center)), (True, False)
    names = (NEURONS, NORMS, (None, *SURROGATES), LOSSES, (None, *AIDS))
    usual = (Parts(*choice) for choice in product(*names, windows, BACKENDS, stages))
    fewer = (
        Parts(*choice, static=static, fewer_steps=True)
        for *choice, static in product(*names, (True, False))
    )
    for parts in chain(usual, fewer):
        if reason := objection(parts):
            yield parts, reason


def test_every_refusal_names_what_was_given_says_why_and_what_to_do():
    plain, rules = Parts("lif"), set()
    seen = {}
    for parts, reason in refused():
        seen.setdefault(reason, parts)
    for reason, parts in seen.items():
        assert re.search(r"; (use|choose|leave) ", reason), reason
        assert ", and " in reason or ": " in reason or ", of which " in reason, reason
        named = {
            field: value
            for field, value in parts._asdict().items()
            if f"{field}={value!r}" in reason or (field == "neuron" and repr(value) in reason)
        }
        if "this network has none" in reason:
            named["stages"] = False
        if "train_timesteps" in reason:
            named["fewer_steps"] = True
        if "a recording" in reason:
            named["static"] = False
        # What it names is what it is about: that alone is refused in the same words.
        assert len(named) >= 2, reason
        assert objection(plain._replace(**named)) == reason
        for field in named:
            assert objection(plain._replace(**{**named, field: getattr(plain, field)})) != reason
        rules |= {rule for rule in composition._RULES if rule(parts) == reason}
    assert rules == set(composition._RULES)


def test_the_help_of_recipes_names_every_part():
    words = set(re.findall(r"[\w-]+", Recipe.__doc__ or ""))
    for registry in (NEURONS, NORMS, SURROGATES, LOSSES, AIDS):
        assert set(registry) <= words
