"""The same metrics in TensorBoard, where it is installed (`pip install quadspike[log]`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from quadspike.training.finish import Result
from quadspike.training.observer import Beginning, Observer


class TensorBoard(Observer):
    """Writes scalars to `tensorboard/` in the run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tensorboard"

    def begin(self, what: Beginning) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(self.folder), purge_step=what.done + 1)

    def epoch(self, metrics: dict[str, Any]) -> None:
        step = metrics["step"]
        for name, value in metrics.items():
            if isinstance(value, dict):
                for layer, number in value.items():
                    self.writer.add_scalar(f"{name}/{layer}", number, step)
            elif name not in ("epoch", "step"):
                self.writer.add_scalar(name, value, step)

    def end(self, result: Result) -> None:
        self.writer.close()


def tensorboard_installed() -> bool:
    """Whether TensorBoard can be written."""
    return importlib.util.find_spec("tensorboard") is not None
