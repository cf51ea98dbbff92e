"""The end of a run: weights, record and what to say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quadspike.training.compilation import counts
from quadspike.training.folder import sha256
from quadspike.training.memory import peak_gib
from quadspike.training.network import copy_weights, count_parameters, write_weights
from quadspike.training.record import measure, write_record

if TYPE_CHECKING:
    from quadspike.training.loop import Training


@dataclass(frozen=True)
class Result:
    """How a run ended; everything it says is also in its `record.json`."""

    status: Literal["finished", "stopped"]
    exit_code: int
    folder: Path
    summary: dict[str, Any]

    @property
    def test_accuracy(self) -> float | None:
        """Of the last epoch that was evaluated; the last of all in a finished run."""
        found: float | None = self.summary.get("test_accuracy")
        return found


def finish(run: Training, code: int) -> Result:
    """Write the weights and the record; only the first worker does, all know the result."""
    status: Literal["finished", "stopped"] = "stopped" if code else "finished"
    history = run.progress.history
    summary: dict[str, Any] = {
        "status": status,
        "epochs": len(history),
        "steps_beyond": run.progress.step,
        "seconds": round(run.progress.seconds, 3),
        "seconds_spent_on": {what: round(s, 3) for what, s in run.progress.spent.items()},
        "best_chosen_on": run.judge.chooses_on,
        "peak_memory_gib": peak_gib(run.device),
    }
    if run.progress.best_epoch is not None:
        last = next(line for line in reversed(history) if "test_accuracy" in line)
        best = history[run.progress.best_epoch - 1]
        summary |= {
            "evaluated_epoch": last["epoch"],
            "test_accuracy": last["test_accuracy"],
            "best_test_accuracy": best["test_accuracy"],
            "best_epoch": best["epoch"],
            "validation_accuracy": last.get("validation_accuracy"),
            "best_validation_accuracy": best.get("validation_accuracy"),
            "images_per_second": history[-1]["images_per_second"],
        }
    if run.workers.first:
        _write(run, summary)
    return Result(status, code, run.folder.path, summary)


def _write(run: Training, summary: dict[str, Any]) -> None:
    run.keep()
    if run.progress.history:  # again: the folder may be another than a moment ago
        run.folder.write_metrics(run.progress.history)
    network = run.judge.network
    weights = {"last": copy_weights(network)}
    if run.best is not None:
        weights["best"] = run.best
    for which, tensors in weights.items():
        write_weights(network, tensors, run.folder.weights(which))
    found = measure(network, run.data.geometry, run.judge.sample)
    summary |= found["summary"]
    neurons = [soma.neuron.config() for soma in network.somas().values()]
    write_record(
        run.folder.record,
        {
            "name": run.recipe.name,
            "recipe": run.recipe.as_dict(),
            "parameters": count_parameters(run.network),
            "environment": run.progress.environments[-1],
            "earlier_environments": run.progress.environments[:-1],
            "kernels": counts(run.progress.kernels) if run.device.type == "cuda" else None,
            "metrics": run.progress.history,
            "summary": summary,
            "layers": found["layers"],
            "energy": found["energy"],
            "neuron": neurons[0] if neurons and all(n == neurons[0] for n in neurons) else None,
            "warnings": run.progress.warnings,
            "notes": list(run.notes),
            "weights": {
                run.folder.weights(which).name: sha256(run.folder.weights(which))
                for which in weights
            },
        },
    )
