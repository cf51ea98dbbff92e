"""The loop, through its one call."""

from __future__ import annotations

import copy
import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from quadspike import LIF, Network, QuadspikeError, QuadspikeWarning, Soma, create_model
from quadspike.data.split import Split
from quadspike.models import load_model
from quadspike.models.files import read_tensors
from quadspike.norms import BatchNorm
from quadspike.recipes import create_recipe
from quadspike.training import Observer, Recipe, start, train
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.evaluate import evaluate
from quadspike.training.memory import GIB, need, out_of_memory
from quadspike.training.network import make_network
from quadspike.training.schedule import learning_rate
from quadspike.training.step import Step
from tests.steps import CPU, tiny


class Watcher(Observer):
    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def begin(self, what: Any) -> None:
        self.told.append(("begin", what))

    def moment(self, now: Any) -> None:
        self.told.append(("moment", now))

    def epoch(self, metrics: dict[str, Any]) -> None:
        self.told.append(("epoch", metrics))

    def warn(self, text: str) -> None:
        self.told.append(("warn", text))

    def end(self, result: Any) -> None:
        self.told.append(("end", result))

    def of(self, kind: str) -> list[Any]:
        return [what for name, what in self.told if name == kind]


def run(folder: Path, recipe: Recipe, **options: Any) -> Any:
    return train(recipe, out=folder, device="cpu", **options)


# -- a run -----------------------------------------------------------------------------------


def test_a_run_leaves_everything(tmp_path: Path) -> None:
    watcher = Watcher()
    result = run(tmp_path / "run", tiny(validation=100), observers=[watcher])
    assert result.status == "finished"
    names = {p.name for p in (tmp_path / "run").iterdir() if not p.name.startswith(".")}
    names.discard("tensorboard")
    assert names == {
        "recipe.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "last.safetensors",
        "best.safetensors",
        "record.json",
    }
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    record = json.loads((tmp_path / "run/record.json").read_text())
    assert record["metrics"] == lines == watcher.of("epoch")
    assert record["recipe"] == tiny(validation=100).as_dict()
    assert record["summary"]["test_accuracy"] == lines[-1]["test_accuracy"]
    assert record["summary"]["best_chosen_on"] == "validation"
    best = max(lines, key=lambda line: line["validation_accuracy"])
    assert record["summary"]["best_epoch"] == best["epoch"]
    assert record["summary"]["best_test_accuracy"] == best["test_accuracy"]
    assert len(record["layers"]) == 2
    assert record["summary"]["energy_mj"] > 0
    assert record["parameters"] == sum(
        p.numel() for p in load_model(tmp_path / "run/last.safetensors").parameters()
    )
    begin = watcher.of("begin")[0]
    assert begin.samples == 1438 - 100
    assert len(watcher.of("moment")) == 2 * begin.steps_per_epoch
    assert watcher.of("end") == [result]


def test_best_and_last_are_the_weights_of_their_epochs(tmp_path: Path) -> None:
    """Epochs that only destroy: the best is the first, and evaluation repeats both figures."""
    recipe = tiny(epochs=4, lr=0.3, batch_size=64, seed=3)
    run(tmp_path / "run", recipe)
    record = json.loads((tmp_path / "run/record.json").read_text())["summary"]
    for weights, noted in (("last", "test_accuracy"), ("best", "best_test_accuracy")):
        found = evaluate(tmp_path / "run", weights=weights, device="cpu")
        assert found.fresh.accuracy == found.recorded == record[noted]
        assert found.fresh.count == 359


def test_the_same_seed_is_the_same_run_and_another_is_not(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(tmp_path / name, tiny(seed=seed))
    a, b, c = (read_tensors(tmp_path / name / "last.safetensors") for name in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["classifier.weight"], c["classifier.weight"])


def test_bf16_and_fp64_train(tmp_path: Path) -> None:
    for precision, dtype in (("bf16", torch.float32), ("fp64", torch.float64)):
        run(tmp_path / precision, tiny(precision=precision, epochs=1))
        assert (
            read_tensors(tmp_path / precision / "last.safetensors")["classifier.weight"].dtype
            == dtype
        )


def test_ones_own_network_neuron_and_data(tmp_path: Path) -> None:
    class Slow(LIF):
        name = "slow"

    images = torch.randint(0, 256, (64, 1, 6, 6), dtype=torch.uint8)
    labels = (images.float().mean((1, 2, 3)) > 127).long()
    split = Split("mine", images, labels, ("dark", "bright"))
    net = Network(
        nn.Flatten(),
        nn.Linear(36, 16, bias=False),
        Soma(16, Slow(beta=0.9)),
        nn.Linear(16, 2),
        timesteps=3,
        input_rank=4,
    )
    recipe = Recipe("mine", "own", "own", timesteps=3, epochs=2, batch_size=32)
    result = run(tmp_path / "run", recipe, model=net, data=(split, split))
    assert result.summary["epochs"] == 2
    saved = read_tensors(tmp_path / "run/last.safetensors")
    assert saved.keys() == net.state_dict().keys()
    assert len(json.loads((tmp_path / "run/record.json").read_text())["layers"]) == 1


def shares_a_layer() -> Network:
    again = [nn.Linear(16, 16, bias=False), Soma(16)]
    layers = [nn.Flatten(), nn.Linear(64, 16, bias=False), Soma(16), *again, *again]
    return Network(*layers, nn.Linear(16, 10), timesteps=2, input_rank=4)


def test_a_network_of_ones_own_may_run_a_layer_twice(tmp_path: Path) -> None:
    recipe = tiny(model="own", precision="fp64")
    result = run(tmp_path / "run", recipe, model=shares_a_layer())
    found = evaluate(tmp_path / "run", model=shares_a_layer(), device="cpu")
    assert found.fresh.accuracy == found.recorded == result.test_accuracy


def test_own_without_being_given(tmp_path: Path) -> None:
    with pytest.raises(QuadspikeError, match="model="):
        run(tmp_path / "run", tiny(model="own"))
    with pytest.raises(QuadspikeError, match="own"):
        run(tmp_path / "run2", tiny(dataset="own"))
    with pytest.raises(QuadspikeError, match="Network"):
        run(tmp_path / "run3", tiny(model="own"), model=nn.Linear(2, 2))


def test_a_dead_layer_is_told_in_words_and_once(tmp_path: Path) -> None:
    net = create_model("mlp", in_channels=1, seed=0)
    with torch.no_grad():
        net.hidden2.soma.norm.weight.zero_()
        net.hidden2.soma.norm.bias.fill_(-1)
    watcher = Watcher()
    run(tmp_path / "run", tiny(lr=1e-9), model=net, observers=[watcher])
    assert [text.split(":")[0] for text in watcher.of("warn")] == ["hidden2.soma"]
    assert "dead" in watcher.of("warn")[0]
    assert json.loads((tmp_path / "run/record.json").read_text())["warnings"] == watcher.of("warn")


# -- what it takes ---------------------------------------------------------------------------


def test_memory_grows_with_steps_and_names_what_would_fit() -> None:
    recipe = create_recipe("cifar10-resnet8-short", batch_size=64)
    from quadspike.data.geometry import GEOMETRIES

    sizes = []
    for steps in (2, 4):
        asked = recipe.but(timesteps=steps)
        net = make_network(asked, GEOMETRIES["cifar10"])
        before = copy.deepcopy(net.state_dict())
        sizes.append(need(net, asked, GEOMETRIES["cifar10"], CPU))
        assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert 1.6 < sizes[1].per_sample / sizes[0].per_sample < 2.5
    total = sizes[0].of(20)
    text = out_of_memory(recipe, 64, sizes[0], int(total / 0.92) + 1)
    assert "batch of 64" in text
    assert f"T = {recipe.timesteps}" in text
    assert "--accumulate 4" in text  # 16 at once is the largest part of 64 that fits 20
    assert sizes[0].largest_batch(sizes[0].of(20)) in (19, 20)
    assert GIB == 2**30


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="the extra log is absent"
    )
    run(tmp_path / "run", tiny())
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    events = accumulator.EventAccumulator(str(tmp_path / "run/tensorboard"))
    events.Reload()
    written = [event.value for event in events.Scalars("test_accuracy")]
    assert written == pytest.approx([line["test_accuracy"] for line in lines])
    assert "rates/hidden1.soma" in events.Tags()["scalars"]


@pytest.mark.parametrize("when", ["__init__", "add_scalar", "close"])
def test_a_run_goes_on_where_tensorboard_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    pytest.importorskip("tensorboard", reason="the extra log is absent")

    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"torch.utils.tensorboard.SummaryWriter.{when}", full)
    with pytest.warns(QuadspikeWarning, match="cannot write .*tensorboard: No space left") as said:
        result = run(tmp_path / "run", tiny())
    assert len([one for one in said if one.category is QuadspikeWarning]) == 1
    assert result.status == "finished"


def test_each_epoch_is_counted_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Step] = []

    class Kept(Step):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    class Look(Watcher):
        def epoch(self, metrics: dict[str, Any]) -> None:
            assert not made[0].totals.any()
            super().epoch(metrics)

    monkeypatch.setattr("quadspike.training.loop.Step", Kept)
    watcher = Look()
    recipe = tiny()
    run(tmp_path / "run", recipe, observers=[watcher])
    per_epoch = watcher.of("begin")[0].steps_per_epoch
    for number, line in enumerate(watcher.of("epoch"), start=1):
        last = learning_rate(recipe, number * per_epoch - 1, per_epoch)
        assert line["lr"] == last
        moment = watcher.of("moment")[number * per_epoch - 1]
        assert line["train_loss"] == pytest.approx(moment.loss)


def test_every_epoch_is_looked_at_twice_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quadspike.training.loop.LOOK_EVERY", {"cpu": 50})
    watcher = Watcher()
    run(tmp_path / "run", tiny(epochs=1), observers=[watcher])
    assert [now.step for now in watcher.of("moment")] == [2, 4, 5]


def test_of_equal_epochs_the_first_is_the_best(tmp_path: Path) -> None:
    result = run(tmp_path / "run", tiny(lr=1e-12, epochs=3))
    assert result.summary["best_epoch"] == 1


@pytest.mark.parametrize("sync", [True, False])
def test_statistics_are_shared_as_the_recipe_says(sync: bool) -> None:
    data = make_data(tiny(), None, CPU, Workers())
    model = make_network(tiny(sync_norm=sync), data.geometry)
    assert {norm.sync for norm in model.modules() if isinstance(norm, BatchNorm)} == {sync}


def test_a_network_that_does_not_fit_is_refused_before_any_work(tmp_path: Path) -> None:
    five = create_model("mlp", in_channels=1, num_classes=5)
    frozen = create_model("mlp", in_channels=1).requires_grad_(False)
    silent = Network(nn.Flatten(), nn.Linear(64, 10), timesteps=2, input_rank=4)
    slow = create_model("mlp", in_channels=1, timesteps=8)
    for model, said in (
        (five, "10 classes"),
        (frozen, "no parameter"),
        (silent, "no soma"),
        (slow, "timesteps=8"),
    ):
        with pytest.raises(QuadspikeError, match=said):
            run(tmp_path / "run", tiny(), model=model)
    for data, said in ((1, "got int;"), ((1, "2"), "got int, str;"), ((1, 2, 3), "int, int, int")):
        with pytest.raises(QuadspikeError, match=f"pair of Splits.*{said}"):
            run(tmp_path / "run", tiny(), data=data)
    for observers in (Observer(), [Observer], [print]):
        with pytest.raises(QuadspikeError, match=r"observers=\[Display\(\)\]"):
            run(tmp_path / "run", tiny(), observers=observers)
    with pytest.raises(QuadspikeError, match="takes a Recipe"):
        run(tmp_path / "run", "digits-mlp")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_start_that_failed_does_not_keep_its_folder(tmp_path: Path) -> None:
    with pytest.raises(QuadspikeError, match="finite"):
        run(tmp_path / "run", tiny(lr=1e38))
    assert run(tmp_path / "run", tiny()).status == "finished"


def test_the_time_counts_from_the_call_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that take long to come are part of it; the pace of the steps does not mind."""
    choose, waiting = start.choose_data, 2.0

    def slow(*arguments: Any) -> Any:
        time.sleep(waiting)
        return choose(*arguments)

    monkeypatch.setattr(start, "choose_data", slow)
    summary = train(tiny(epochs=1), out=tmp_path / "run", device="cpu").summary
    assert summary["seconds"] > waiting
    working = summary["seconds"] - waiting
    assert summary["images_per_second"] > 0.9 * 1438 / working  # of all that there are
