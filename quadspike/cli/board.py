"""What many runs look like while they run: a bar for all of them, one for the run under way."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.markup import escape

from quadspike.cli.bar import beside_bar, described_bars
from quadspike.cli.display import duration
from quadspike.training.finish import Result
from quadspike.training.observer import Beginning, Moment
from quadspike.training.queue import End, Job, Watcher
from quadspike.training.stop import describe


class Board(Watcher):
    """Two bars on a terminal; everywhere a line when a run has come to its end."""

    def __init__(self, console: Console, again: str = "the same command goes on") -> None:
        self.again = again
        self.progress = described_bars(console)
        self.whole = self.progress.add_task("", text="")
        self.here = self.progress.add_task("", text="")
        self.progress.start()
        self.name, self.number, self.total = "", 0, 0
        self.steps, self.epochs = 0, 0
        self.earlier = 1.0  # the share of the run under way that an earlier call has made
        self.made, self.started = 0.0, time.monotonic()

    def start(self, job: Job[Any], number: int, total: int) -> None:
        self.next_run(job.title, number, total)

    def next_run(self, name: str, number: int, total: int) -> None:
        """As `start`, of a run that is no queue's."""
        self.name, self.number, self.total = name, number, total
        self.earlier = 1.0

    def begin(self, what: Beginning) -> None:
        self.epochs = what.recipe.epochs
        self.steps = what.steps_per_epoch * self.epochs
        self.earlier = what.done / self.steps
        if 0 < self.earlier < 1:
            self._say(f"{self.name}: going on after step {what.done:,}")

    def moment(self, now: Moment) -> None:
        share = now.total_step / self.steps
        spent = time.monotonic() - self.started
        runs = self.made + share - self.earlier
        left = spent / runs * (self.total - self.number + 1 - share)
        self.progress.update(
            self.whole,
            description=f"run {self.number}/{self.total}",
            total=self.total,
            completed=self.number - 1 + share,
            text=f"about {duration(left)} left",
        )
        here = f"{self.name} epoch {now.epoch}/{self.epochs}"
        told = [f"loss {now.loss:.4f}", f"train {now.accuracy:6.2%}"]
        told += [] if now.memory_gib is None else [f"{now.memory_gib:.1f} GiB"]
        self.progress.update(
            self.here,
            description=here,
            total=self.steps,
            completed=now.total_step,
            text=beside_bar(self.progress.console.width, here, told),
        )

    def warn(self, text: str) -> None:
        self._say(f"[yellow]warning[/] {self.name}: {escape(text)}")

    def end(self, result: Result) -> None:
        self.made += 1 - self.earlier
        if result.exit_code:
            self._say(
                f"{self.name}: stopped because {describe(result.exit_code)}; everything is "
                f"saved: {escape(self.again)}"
            )

    def done(self, outcome: End) -> None:
        place = f"{self.number:>{len(str(self.total))}}/{self.total} {self.name}"
        if outcome.failure:
            self._say(f"{place}: [red]failed[/]: {escape(outcome.failure)}")
        elif outcome.seconds is not None:
            when = f"in {duration(outcome.seconds)}" if self.earlier < 1 else "already finished"
            self._say(f"{place}: {outcome.said()}, {when}")

    def close(self) -> None:
        """Take the bars away."""
        self.progress.stop()

    def _say(self, text: str) -> None:
        self.progress.console.print(text, soft_wrap=True)
