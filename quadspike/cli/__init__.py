"""The command `quadspike`: a thin door that parses, calls and prints."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import NoReturn

import tyro
from tyro.conf import FlagCreatePairsOff

from quadspike import __version__
from quadspike.cli import data, records
from quadspike.cli.bench import bench
from quadspike.cli.compare import compare
from quadspike.cli.energy import energy
from quadspike.cli.evaluate import evaluate
from quadspike.cli.figures import figures
from quadspike.cli.interrupts import held_back
from quadspike.cli.layers import layers
from quadspike.cli.models import models
from quadspike.cli.quickstart import quickstart
from quadspike.cli.recipes import recipes
from quadspike.cli.report import report
from quadspike.errors import QuadspikeError, check_name

Commands = dict[str, Callable[..., None]]

COMMANDS: Commands = {
    "quickstart": quickstart,
    "recipes": recipes,
    "compare": compare,
    "evaluate": evaluate,
    "report": report,
    "layers": layers,
    "bench": bench,
    "energy": energy,
    "figures": figures,
    "models": models,
}
GROUPS: dict[str, tuple[str, Commands]] = {
    "data": (
        "Data sets: what is there, whether it is whole, how it looks.",
        {
            "list": data.list_,
            "verify": data.verify,
            "show": data.show,
            "download": data.download,
            "simulate": data.simulate,
        },
    ),
    "records": (
        "Records: finished runs kept as small text, checked, and made into tables and figures.",
        {
            "add": records.add,
            "verify": records.verify,
            "table": records.table,
            "figure": records.figure,
            "export": records.export,
            "evaluate": records.evaluate,
        },
    ),
}

_TRAINING = ("train", "sweep", "compare", "quickstart")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake ends with one line and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if given and given[0] in _TRAINING and "--help" not in given:
            with held_back():
                import quadspike.training  # noqa: F401
        if given and given[0] == "train":
            from quadspike.cli.train import train

            train(given[1:])
        elif given and given[0] == "sweep":
            from quadspike.cli.sweep import sweep

            sweep(given[1:])
        elif given and given[0] in GROUPS:
            title, commands = GROUPS[given[0]]
            _run(commands, f"quadspike {given[0]}", title, given[1:])
        elif given == ["--version"]:
            print(f"quadspike {__version__}")
        else:
            title = (
                "Deep spiking networks around the discretized QIF neuron. `COMMAND --help` "
                "explains a command, `--version` says which version this is."
            )
            _run({**_OTHERS, **COMMANDS}, "quadspike", title, given)
    except QuadspikeError as error:
        _refuse(str(error))
    except OSError as error:
        if error.filename is None:  # no matter of a user's files
            raise
        _refuse(f"cannot use {error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        print("quadspike: interrupted; nothing half-written is left", file=sys.stderr)
        raise SystemExit(130) from None


def program() -> NoReturn:
    """The command as a process of its own; `main`, and then out."""
    code: str | int | None = 0
    try:
        main()
        _flush()
    except SystemExit as stop:
        code = stop.code
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # where whoever was reading has gone, as `head` does
            why = f"cannot write what it says: {error.strerror}"
            print(f"quadspike: {why}; make room and give the same command again", file=sys.stderr)
        code = 1
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # The threads of a process group and Python's own end now and then wait for each other
        # for ever, or abort; nothing is left to be done.
        _flush()
        os._exit(code if isinstance(code, int) else 1 if code else 0)
    raise SystemExit(code)


def _refuse(why: str) -> NoReturn:
    worker = os.environ.get("RANK", "0")
    who = "quadspike" if worker == "0" else f"quadspike (worker {worker})"
    print(f"{who}: {why}", file=sys.stderr)
    raise SystemExit(2) from None


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as where a shell has closed it
            stream.flush()


def _run(commands: Commands, prog: str, title: str, given: list[str]) -> None:
    if given and not given[0].startswith("-"):
        command = commands[check_name("command", given[0], commands)]
        config = (FlagCreatePairsOff,)
        tyro.cli(command, prog=f"{prog} {given[0]}", args=given[1:], config=config)
        return
    listed = {name: _listed(_sentence(command)) for name, command in commands.items()}
    tyro.extras.subcommand_cli_from_dict(listed, prog=prog, description=title, args=given)


def _sentence(command: Callable[..., None]) -> str:
    return (command.__doc__ or "").partition("\n\n")[0]


def _listed(title: str) -> Callable[..., None]:
    """What parses by itself, as it appears in the list of commands; it is run before this."""

    def entry() -> None: ...

    entry.__doc__ = title
    return entry


_OTHERS: Commands = {
    "train": _listed("Train a setting of the paper, or your own variant of it."),
    "sweep": _listed("Train one with other values of its fields, every combination."),
    **{name: _listed(title) for name, (title, _) in GROUPS.items()},
}
