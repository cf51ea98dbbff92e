"""The same metrics in TensorBoard, where it is installed (`pip install -e ".[log]"`)."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quadspike.errors import QuadspikeWarning
from quadspike.training.finish import Result
from quadspike.training.observer import Beginning, Observer


class TensorBoard(Observer):
    """Writes scalars to `tensorboard/` in the run's folder, for as long as it can.

    The run's own files hold the same numbers, so that it does not end where these cannot be kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tensorboard"
        self.writer: Any = None

    def begin(self, what: Beginning) -> None:
        from torch.utils.tensorboard import SummaryWriter

        with self._leaving_off():
            self.writer = SummaryWriter(str(self.folder), purge_step=what.done + 1)

    def epoch(self, metrics: dict[str, Any]) -> None:
        if self.writer is None:
            return
        step = metrics["step"]
        with self._leaving_off():
            for name, value in metrics.items():
                if isinstance(value, dict):
                    for layer, number in value.items():
                        self.writer.add_scalar(f"{name}/{layer}", number, step)
                elif name not in ("epoch", "step"):
                    self.writer.add_scalar(name, value, step)

    def end(self, result: Result) -> None:
        if self.writer is not None:
            with self._leaving_off():
                self.writer.close()

    @contextmanager
    def _leaving_off(self) -> Iterator[None]:
        """No further word to TensorBoard once it could not write."""
        try:
            yield
        except OSError as error:
            self.writer = None
            warnings.warn(
                f"cannot write {self.folder}: {error.strerror or error}; the run goes on without "
                "TensorBoard",
                QuadspikeWarning,
                stacklevel=2,
            )


def tensorboard_installed() -> bool:
    """Whether TensorBoard can be written."""
    return importlib.util.find_spec("tensorboard") is not None
