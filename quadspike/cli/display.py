"""What a run looks like while it trains: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID

from quadspike import written
from quadspike.cli.bar import beside_bar, described_bars
from quadspike.cli.console import make_console
from quadspike.training.field_values import OWN
from quadspike.training.finish import Result
from quadspike.training.observer import Beginning, Moment, Observer
from quadspike.training.stop import describe

PLAIN_SECONDS = 60.0
"""Between two lines within an epoch, where no line can be redrawn."""


def duration(seconds: float) -> str:
    """Time for people, with spaces that a search in a log finds.

    >>> duration(7.31), duration(132.8), duration(7400)
    ('7.3 s', '2 min 13 s', '2 h 03 min')
    """
    return written.searchable(written.duration(seconds))


def millijoule(energy: float) -> str:
    """Energy for people, the same way.

    >>> millijoule(0.0003212)
    '0.321 µJ'
    """
    return written.searchable(written.millijoule(energy))


def _epochs(count: int) -> str:
    return "epoch" if count == 1 else written.counted(count, "epoch")


class Display(Observer):
    """Shows a run on a console."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or make_console(lasting=True)
        self.progress: Progress | None = None
        self.epochs, self.per_epoch, self.shown = 0, 0, time.monotonic()

    def begin(self, what: Beginning) -> None:
        recipe = what.recipe
        self.epochs, self.per_epoch = recipe.epochs, what.steps_per_epoch
        self._live()
        network = f"{recipe.model} with {recipe.neuron_words()}"
        if recipe.model == OWN:
            network = "a network of your own"
        fewer = recipe.trained_steps < recipe.timesteps
        full = recipe.full_epochs
        until = f" until the last {_epochs(full)}" if full else ""
        shown = f" ({recipe.trained_steps} in training{until})" if fewer else ""
        steps = f"T = {recipe.timesteps}{shown}"
        workers = f" on each of {what.workers} workers" if what.workers > 1 else ""
        self._say(
            f"[bold]{escape(recipe.name)}[/]: {network}, "
            f"{steps}, {what.parameters:,} parameters, {recipe.precision}, "
            f"{what.device}{workers}"
        )
        small, side = recipe.small_epochs, recipe.small_size
        smaller = f"; images of {side} x {side} in the first {_epochs(small)}" if small else ""
        graded = recipe.graded_epochs
        grades = f"; grades in the first {_epochs(graded)}, then spikes" if graded else ""
        self._say(
            f"{what.samples:,} training samples of {recipe.dataset}, batch {recipe.batch_size}, "
            f"{written.counted(recipe.epochs, 'epoch')} of "
            f"{written.counted(what.steps_per_epoch, 'step')}{smaller}{grades}"
        )
        for note in what.notes:
            self._say(escape(note))
        if what.done:
            self._say(f"going on after step {what.done:,}")

    def _live(self) -> None:
        """The line that is redrawn, where one can be."""
        if self.console.is_terminal:
            self.progress = described_bars(self.console)
            self.task: TaskID = self.progress.add_task("", total=self.per_epoch, text="")
            self.progress.start()

    def moment(self, now: Moment) -> None:
        where = f"epoch {now.epoch}/{self.epochs} step {now.step}/{self.per_epoch}"
        told = [f"loss {now.loss:.4f}", f"train {now.accuracy:6.2%}"]
        told += [] if now.memory_gib is None else [f"{now.memory_gib:.1f} GiB"]
        told += [f"{now.images_per_second:,.0f} images/s"]
        left = f"{duration(now.seconds_left)} left"
        if self.progress is not None:
            text = beside_bar(self.console.width, where, told, left)
            self.progress.update(self.task, description=where, completed=now.step, text=text)
        elif time.monotonic() - self.shown >= PLAIN_SECONDS and now.step < self.per_epoch:
            self._say("  ".join([where, *told, left]))

    def epoch(self, metrics: dict[str, Any]) -> None:
        judged = ""
        if "validation_accuracy" in metrics:
            judged += f"  held out {metrics['validation_accuracy']:6.2%}"
        if "test_accuracy" in metrics:
            rates = metrics["rates"].values()
            fires = sum(rates) / len(rates)
            judged += f"  test {metrics['test_accuracy']:6.2%}  layers fire {fires:.3f}"
        self._say(
            f"epoch {metrics['epoch']:>{len(str(self.epochs))}}/{self.epochs}"
            f"  loss {metrics['train_loss']:.4f}  train {metrics['train_accuracy']:6.2%}{judged}"
            f"  {metrics['images_per_second']:,.0f} images/s  {duration(metrics['seconds'])}"
        )

    def warn(self, text: str) -> None:
        self._say(f"[yellow]warning[/] {escape(text)}")

    def end(self, result: Result) -> None:
        self.close()
        summary = result.summary
        folder = escape(str(result.folder))
        if result.exit_code:
            self._say(
                f"stopped because {describe(result.exit_code)}; everything is saved in "
                f"{folder}: go on with --resume"
            )
            return
        judged = "" if summary["best_chosen_on"] == "test" else ", chosen on held-out images"
        self._say(
            f"[bold]test accuracy {summary['test_accuracy']:.2%}[/] after the last epoch "
            f"(best {summary['best_test_accuracy']:.2%} at epoch {summary['best_epoch']}{judged}) "
            f"in {duration(summary['seconds'])}"
        )
        self._say(f"the time: {written.searchable(written.spending(summary['seconds_spent_on']))}")
        if "energy_mj" in summary:
            self._say(
                f"neurons fire in {summary['firing_rate']:.1%} of steps; one inference costs "
                f"{millijoule(summary['energy_mj'])} (the same network with ReLU: "
                f"{millijoule(summary['energy_ann_mj'])})"
            )
        self._say(
            f"weights, metrics and the record are in {folder}; look at them with: "
            f"quadspike report {escape(shlex.quote(str(result.folder)))}"
        )

    def close(self) -> None:
        """Take the live line away."""
        if self.progress is not None:
            self.progress.stop()
            self.progress = None

    def _say(self, text: str) -> None:
        self.shown = time.monotonic()
        self.console.print(text, soft_wrap=True)
