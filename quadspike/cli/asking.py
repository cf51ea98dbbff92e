"""What commands ask that take a recipe with every field of it: `train` and `sweep`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import tyro
from rich.console import Console
from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes

from quadspike.cli.recipes import recipes
from quadspike.errors import QuadspikeError
from quadspike.recipes import RECIPES, create_recipe
from quadspike.training.recipe import Recipe

O = TypeVar("O")  # noqa: E741


@dataclass(frozen=True)
class Asked(Generic[O]):
    """What was given: the recipe's name, the recipe with its fields, the command's own options."""

    name: str
    recipe: Recipe
    options: O
    dry_run: bool


def ask(command: str, arguments: list[str], options: O, usage: str, does: str) -> Asked[O] | None:
    """Parse `RECIPE [--FIELD VALUE ...]`; None where all that was asked for is the usage."""
    if not arguments or arguments[0].startswith("-"):
        if arguments and arguments[0] not in ("-h", "--help"):
            raise QuadspikeError(f"name a recipe first: {', '.join(RECIPES)}")
        _explain(command, usage)
        return None
    name, rest = arguments[0], arguments[1:]
    usual = create_recipe(name)

    def parse(recipe: Any = usual, options: Any = options, dry_run: bool = False) -> Any:
        changed = {field: new for field, (_, new) in usual.differences(recipe).items()}
        return Asked(name, create_recipe(name, **changed), options, dry_run)

    parse.__annotations__ |= {"recipe": Recipe, "options": type(options), "dry_run": bool}
    parse.__doc__ = f"""{does}

    Args:
        recipe: The setting; the defaults shown are the recipe's.
        options: How to run it.
        dry_run: Say what it would take, and train nothing.
    """
    config = (FlagCreatePairsOff, OmitArgPrefixes)
    found: Asked[O] = tyro.cli(parse, prog=f"quadspike {command} {name}", args=rest, config=config)
    return found


def _explain(command: str, usage: str) -> None:
    Console().print(
        f"{usage}\n\nquadspike {command} RECIPE --help lists every field with the recipe's value. "
        "The recipes:\n",
        highlight=False,
        markup=False,
    )
    recipes()
