"""Evaluation by graphs, with a stand-in for the capture; on a GPU it is in `test_gpu.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from quadspike.data.loader import Batch
from quadspike.training import Recipe, score, train
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers, current
from quadspike.training.graph import CapturedCount, CapturedStep, choose_runners
from quadspike.training.network import make_network
from quadspike.training.scoring import Counter
from quadspike.training.spending import Spending
from quadspike.training.step import Step
from tests.steps import CPU, step_of

RECIPE = Recipe("graph", "digits", "mlp", batch_size=128, precision="bf16", validation=100)
Work = Callable[[], None]


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> list[Work]:
    """Every capture; like a graph, it runs nothing yet and reads the same tensors for ever."""
    made: list[Work] = []

    def stand_in(work: Work, pool: object) -> Work:
        made.append(work)
        return work

    monkeypatch.setattr("quadspike.training.graph.capture", stand_in)
    return made


def test_every_sample_counts_once_and_to_the_same_bits(captures: list[Work]) -> None:
    """359 test samples are two whole batches and a part of one; 100 held out are another part."""
    data = make_data(RECIPE, None, CPU, Workers())
    model = make_network(RECIPE, data.geometry)
    captured = CapturedCount(Counter(model, RECIPE, CPU))
    assert data.validation is not None
    for number in range(3):
        with torch.no_grad():  # as training does: in place
            model.classifier.weight.add_(0.1 * number)
        for source in (data.validation, data.test):
            args = (model, source, RECIPE, CPU, Workers())
            assert score(*args, captured) == score(*args)
    assert len(captures) == 3  # 128, 103 and 100 samples, and none again


def test_a_source_of_ever_other_shapes_gets_few_graphs(captures: list[Work]) -> None:
    class Growing:
        def __len__(self) -> int:
            return 40

        def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
            for size in range(1, 21):
                for _ in range(2):
                    yield Batch(torch.randn(size, 1, 8, 8), torch.zeros(size).long())

    model = make_network(RECIPE, make_data(RECIPE, None, CPU, Workers()).geometry)
    captured = CapturedCount(Counter(model, RECIPE, CPU))
    found = score(model, Growing(), RECIPE, CPU, Workers(), captured)
    assert found.count == 2 * sum(range(1, 21))
    assert len(captures) == 8


def runners(device: torch.device, workers: Workers) -> tuple[object, object, str]:
    step, _ = step_of(RECIPE.but(precision="fp32"))
    step.device, step.workers = device, workers
    return choose_runners(step, Spending())


def test_graphs_are_for_one_process_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadspike.training.graph.make_pool", lambda: None)
    gpu = torch.device("cuda")
    for place in ((CPU, Workers()), (gpu, Workers(0, 2))):
        learn, count, why = runners(*place)
        assert isinstance(learn, Step)
        assert isinstance(count, Counter)
        assert "step by step" in why
    learn, count, _ = runners(gpu, Workers())
    assert isinstance(learn, CapturedStep)
    assert isinstance(count, CapturedCount)


def test_a_gpu_that_is_trained_on_is_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph captures what runs on the current GPU, and of a run on another one nothing."""
    monkeypatch.setattr("torch.cuda.device", lambda device: nullcontext(device))
    for name, expected in (("cpu", None), ("cuda:1", torch.device("cuda:1"))):
        with current(torch.device(name)) as found:
            assert found == expected


def test_a_run_makes_its_device_the_current_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    current_ones: list[torch.device] = []

    def noted(device: torch.device) -> nullcontext[None]:
        current_ones.append(device)
        return nullcontext()

    monkeypatch.setattr("quadspike.training.start.current", noted)
    train(RECIPE.but(precision="fp32", epochs=1), out=tmp_path / "run", device="cpu")
    assert current_ones == [CPU]
