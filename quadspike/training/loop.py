"""A run under way: its epochs, looks, evaluations and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from quadspike.data.streaming import decoding
from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.training.checkpoint import (
    Progress,
    load_checkpoint,
    restore,
    run_tensors,
    save_checkpoint,
)
from quadspike.training.clock import Clock, Workload
from quadspike.training.compilation import Kernels
from quadspike.training.distributed import Workers
from quadspike.training.finish import Result, finish
from quadspike.training.folder import RunFolder
from quadspike.training.graph import choose_runners
from quadspike.training.judge import Judge
from quadspike.training.memory import is_out_of_memory, need, out_of_memory, peak_gib
from quadspike.training.network import copy_weights, count_parameters
from quadspike.training.nonfinite import explain_non_finite
from quadspike.training.observer import Beginning, Moment, Observer
from quadspike.training.recipe import Recipe
from quadspike.training.record import device_name
from quadspike.training.schedule import learning_rate, make_optimizer, set_learning_rate
from quadspike.training.scoring import EvaluationStoppedError
from quadspike.training.sources import TrainingData
from quadspike.training.spending import Spending
from quadspike.training.step import CORRECT, LOSS, NORM, SEEN, Step
from quadspike.training.stop import Stop
from quadspike.training.tensorboard import TensorBoard, tensorboard_installed
from quadspike.training.trainee import Trainee

LOOK_EVERY = {"cpu": 1, "cuda": 50}
"""Most steps between two looks at the device; each waits for it, and then it for the host."""
OTHER_SOURCE = (
    "parts of this run were made with different source: no one commit can repeat it, so that "
    "records add will refuse it"
)


@dataclass
class Training:
    """A run under way."""

    recipe: Recipe
    network: Network
    data: TrainingData
    folder: RunFolder
    workers: Workers
    device: torch.device
    made_with: dict[str, Any]
    """As `environment` found it when the run was called."""
    notes: tuple[str, ...]
    observers: Sequence[Observer]
    kernels: Kernels
    spent: Spending

    def __post_init__(self) -> None:
        self.per_epoch = len(self.data.train)
        self.trainee = Trainee(self.network, self.recipe, self.workers.many)
        self.optimizer = make_optimizer(self.recipe, self.trainee)
        self.step = Step(
            self.trainee, self.recipe, self.optimizer, self.workers, self.device, self.per_epoch
        )
        self.learn, count, how = choose_runners(self.step, self.spent)
        self.judge = Judge(
            self.step.judged, self.recipe, self.data, self.device, self.workers, count
        )
        if self.device.type == "cuda":
            self.notes = (*self.notes, how)
        self.progress = Progress(samples=self.data.sizes.train)
        self.best: dict[str, torch.Tensor] | None = None
        if not self.workers.first:
            self.observers = ()
        elif tensorboard_installed():
            self.observers = (*self.observers, TensorBoard(self.folder.path))

    def restore(self) -> None:
        """Go on from the checkpoint."""
        saved = load_checkpoint(self.folder.checkpoint)
        if saved.recipe != self.recipe:
            raise QuadspikeError(
                f"{self.folder.checkpoint} is of another run: its recipe is not that of "
                f"{self.folder.recipe.name}"
            )
        restore(saved, self.folder.checkpoint, self.step)
        if saved.progress.samples != self.data.sizes.train:
            raise QuadspikeError(
                f"{self.folder.path} was trained on {saved.progress.samples:,} samples, the data "
                f"now hold {self.data.sizes.train:,}; resume on the same data"
            )
        self.progress = saved.progress
        self.kernels.add(self.progress.kernels)
        self.spent.add(self.progress.spent)
        self.best = {n: t.to(self.device) for n, t in saved.part("best").items()} or None
        self.step.resume(self.total_step)
        if self.workers.first:
            self.step.totals.copy_(saved.part("totals")["epoch"])
            self.folder.write_metrics(self.progress.history)

    @property
    def total_step(self) -> int:
        return self.progress.epoch * self.per_epoch + self.progress.step

    def run(self, stop: Stop, save_every: float, keep: Callable[[], None]) -> Result:
        """All epochs that are left; saves and ends early when `stop` says so.

        `keep` is called before anything is written; see `RunFolder.opened`.
        """
        self.keep = keep
        workload = Workload(self.recipe, self.data.geometry.size, self.per_epoch)
        self.clock = Clock(save_every, self.total_step, workload)
        left = self.progress.epoch < self.recipe.epochs
        if left:
            self.progress.made_with(self.made_with)
        if len({part["source"] for part in self.progress.environments}) > 1:
            self.notes = (*self.notes, OTHER_SOURCE)
        beginning = Beginning(
            self.recipe,
            count_parameters(self.network),
            device_name(self.device),
            self.workers.world,
            self.data.sizes.train,
            self.per_epoch,
            self.total_step,
            self.notes,
        )
        for watcher in self.observers:
            watcher.begin(beginning)
        code = 0
        with stop.listening(), decoding(), self.spent.on("steps"):
            while self.progress.epoch < self.recipe.epochs and not code:
                code = self._epoch(stop)
            if left and not code:
                self._save()
        return self._end(code)

    def _epoch(self, stop: Stop) -> int:
        """The rest of an epoch and its evaluation; an exit code where the run has to end."""
        self.network.train()
        self.trainee.manner = self.recipe.manner_in(self.progress.epoch)
        every = min(LOOK_EVERY[self.device.type], max(1, self.per_epoch // 2))
        try:
            batches = self.data.train.epoch(self.progress.epoch, self.progress.step)
            for inputs, labels in batches:
                lr = learning_rate(self.recipe, self.total_step, self.per_epoch)
                set_learning_rate(self.optimizer, lr)
                self.learn(inputs, labels)
                self.progress.step += 1
                if self.progress.step % every == 0 or self.progress.step == self.per_epoch:
                    code = self._look(stop)
                    if code:
                        return code
            return self._end_epoch(stop)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise QuadspikeError(self._too_large()) from None

    def _look(self, stop: Stop) -> int:
        """Read how it goes, show it, and decide together whether to save or to end."""
        totals = self.workers.total(self.step.totals)
        loss, correct, seen, _, spoilt = torch.cat([totals, self.step.spoilt[None]]).tolist()
        if spoilt:
            raise QuadspikeError(explain_non_finite(self.step, self.data.train, self.per_epoch))
        wishes = [stop.code, int(self.clock.save_due())]
        code, save = self.workers.largest(wishes, self.device)
        now = Moment(
            self.progress.epoch + 1,
            self.progress.step,
            self.total_step,
            loss / seen,
            correct / seen,
            self.clock.rate(self.total_step) * self.recipe.batch_size,
            self.clock.left(self.total_step),
            peak_gib(self.device),
        )
        for watcher in self.observers:
            watcher.moment(now)
        if code or save:
            self._save(totals)
        return code

    def _end_epoch(self, stop: Stop) -> int:
        """Note the epoch, with its evaluation where one is due, and start the next.

        Where a signal ends that evaluation, the epoch is not noted: a resumed run evaluates anew.
        """
        sums = self.workers.total(self.step.totals)
        totals = sums.tolist()
        epoch = self.progress.epoch + 1
        line: dict[str, Any] = {
            "epoch": epoch,
            "step": self.total_step,
            "lr": learning_rate(self.recipe, self.total_step - 1, self.per_epoch),
            "train_loss": totals[LOSS] / totals[SEEN],
            "train_accuracy": totals[CORRECT] / totals[SEEN],
            "grad_norm": totals[NORM] / totals[SEEN],
        }
        if self.recipe.evaluates(epoch):
            self.workers.align(self.trainee, self.judge.network)
            try:
                with self.spent.on("evaluation"):
                    found, ailments = self.judge(stop)
            except EvaluationStoppedError:
                self._save(sums)
                return self.workers.largest([stop.code], self.device)[0]
            line |= found
            self._warn(ailments)
            self._keep_best(line, epoch)
        line["seconds"] = round(sum(self.spent.seconds().values()), 3)
        line["images_per_second"] = self._images_per_second()
        self.progress.history.append(line)
        self.progress.epoch, self.progress.step = epoch, 0
        self.step.totals.zero_()
        if self.workers.first:
            self.keep()
            self.folder.write_metrics(self.progress.history)
        for watcher in self.observers:
            watcher.epoch(line)
        return 0

    def _images_per_second(self) -> float:
        """Of this part of the run; of the one before where it has made no step yet."""
        if rate := self.clock.rate(self.total_step):
            self.progress.images_per_second = round(rate * self.recipe.batch_size, 1)
        return self.progress.images_per_second

    def _warn(self, ailments: Sequence[str]) -> None:
        """Tell what ails a layer, each layer once."""
        for warning in ailments:
            layer = warning.split(":")[0]
            if not any(known.startswith(f"{layer}:") for known in self.progress.warnings):
                self.progress.warnings.append(warning)
                for watcher in self.observers:
                    watcher.warn(warning)

    def _keep_best(self, line: dict[str, Any], epoch: int) -> None:
        """The weights of the best epoch, by held-out images where there are any."""
        accuracy = f"{self.judge.chooses_on}_accuracy"
        best = self.progress.best_epoch
        if best is None or line[accuracy] > self.progress.history[best - 1][accuracy]:
            self.progress.best_epoch = epoch
            self.best = copy_weights(self.judge.network)

    def _save(self, totals: torch.Tensor | None = None) -> None:
        self.progress.spent = self.spent.seconds()
        self.progress.seconds = sum(self.progress.spent.values())
        self._images_per_second()
        self.progress.kernels = asdict(self.kernels)
        if self.workers.first:
            sums = self.step.totals if totals is None else totals
            with self.spent.on("saving"):
                tensors = run_tensors(self.step, sums, self.best)
                self.keep()
                save_checkpoint(self.folder.checkpoint, self.recipe, self.progress, tensors)
        self.clock.saved()
        for watcher in self.observers:
            watcher.saved(self.total_step)

    def _end(self, code: int) -> Result:
        result = finish(self, code)
        for watcher in self.observers:
            watcher.end(result)
        # torchrun ends the first worker once another has ended with a code: let it write first.
        self.workers.largest([code], self.device)
        return result

    def _too_large(self) -> str:
        self.optimizer.zero_grad(set_to_none=True)
        share = self.workers.share_of(self.recipe.batch_size)
        total = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            total = torch.cuda.get_device_properties(self.device).total_memory
        needed = need(self.network, self.recipe, self.data.geometry, self.device)
        return out_of_memory(self.recipe, share, needed, total)
