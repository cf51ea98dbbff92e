"""What commands ask that take a recipe with every field of it: `train` and `sweep`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_origin

import tyro
from tyro.conf import OmitArgPrefixes
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from quadspike.cli.recipes import recipes
from quadspike.errors import QuadspikeError
from quadspike.recipes import RECIPES, create_recipe
from quadspike.recipes.registry import setting_of
from quadspike.training.fields import parse_fields
from quadspike.training.recipe import Recipe, drafting

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
    packaged = create_recipe(name)

    def parse(recipe: Any = packaged, run: Any = options, dry_run: bool = False) -> Any:
        return recipe, run, dry_run

    parse.__annotations__ |= {"recipe": Recipe, "run": type(options), "dry_run": bool}
    parse.__doc__ = f"""{does}

    Args:
        recipe: The setting; the defaults shown are the recipe's.{_following(name)}
        run: How to run it.
        dry_run: Say what it would take, and train nothing.
    """
    with _NUMBERS_BY_NAME, drafting():
        recipe, own, dry_run = tyro.cli(
            parse, prog=f"quadspike {command} {name}", args=rest, config=(OmitArgPrefixes,)
        )
    named = _named(rest)
    if named.count("neuron_constants") > 1:  # the parser takes the last alone
        raise QuadspikeError("give --neuron-constants once, with all its numbers: a=0.3 u-th=0.6")
    given = {field: v for field, v in recipe.as_dict().items() if field in named}
    return Asked(name, create_recipe(name, **given), own, dry_run)


def _following(name: str) -> str:
    """Which fields of a recipe are others when it is given other epochs, in words.

    >>> _following("cifar10-resnet19-strong")
    ' From --epochs follow: --full-epochs, --graded-epochs.'
    """
    if "epochs" not in setting_of(name):
        return ""
    packaged = create_recipe(name)
    unlike = packaged.differences(create_recipe(name, epochs=2 * packaged.epochs))
    options = [f"--{field.replace('_', '-')}" for field in unlike if field != "epochs"]
    return f" From --epochs follow: {', '.join(options)}."


def _named(arguments: list[str]) -> list[str]:
    """The fields that options speak of, also where they only repeat the recipe's value.

    >>> _named(["--epochs", "3", "--no-sync-norm", "--graded_epochs=2"])
    ['epochs', 'sync_norm', 'graded_epochs']
    """
    options = (word.partition("=")[0] for word in arguments if word.startswith("--"))
    return [option[2:].replace("-", "_").removeprefix("no_") for option in options]


_NUMBERS_BY_NAME = ConstructorRegistry()


@_NUMBERS_BY_NAME.primitive_rule
def _numbers_by_name(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """`a=0.3 u-th=0.6`, as the rest of the command line has it: without quotes and commas."""
    if get_origin(info.type) is not Mapping:
        return None

    def parse(words: list[str]) -> dict[str, Any]:
        found = parse_fields(",".join(words))
        return {name.replace("-", "_"): number for name, number in found.items()}

    def write(numbers: Mapping[str, float]) -> list[str]:
        return [f"{name}={number!r}" for name, number in numbers.items()]

    return PrimitiveConstructorSpec(
        "*", "NAME=NUMBER ...", parse, lambda given: isinstance(given, Mapping), write
    )


def _explain(command: str, usage: str) -> None:
    print(
        f"{usage}\n\nquadspike {command} RECIPE --help lists every field with the recipe's value. "
        "The recipes:\n"
    )
    recipes()
