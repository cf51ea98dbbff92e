"""Numbers as people write them, with spaces that do not break; `searchable` for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping

NOTHING = "—"


def percent(share: float, digits: int = 1) -> str:
    """A share of the whole.

    >>> percent(0.9781).split()
    ['97.8', '%']
    """
    return f"{100 * share:.{digits}f}\u00a0%" if math.isfinite(share) else NOTHING


def with_spread(value: float, spread: float | None) -> str:
    """A figure in percent with its spread, where there is one.

    >>> with_spread(96.44, 0.07), with_spread(70.5, None)
    ('96.44 ± 0.07', '70.50')
    """
    return f"{value:.2f}" + ("" if spread is None else f" ± {spread:.2f}")


def counted(count: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "seed"), counted(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{count} {what}{'s' * (count != 1)}"


def duration(seconds: float) -> str:
    """The two largest units.

    >>> duration(133).split()
    ['2', 'min', '13', 's']
    """
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 59.95:
        return f"{seconds:.1f}\u00a0s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}\u00a0min {whole % 60:02d}\u00a0s"
    return f"{whole // 3600}\u00a0h {whole % 3600 // 60:02d}\u00a0min"


def spending(seconds: Mapping[str, float]) -> str:
    """What time went into, the most first, without what is next to nothing.

    >>> searchable(spending({"data": 0.01, "network": 0.31, "steps": 132.8, "capture": 7.3}))
    'steps 2 min 13 s, capture 7.3 s, network 0.3 s'
    """
    first, *others = sorted(seconds, key=lambda what: -seconds[what])
    told = [first, *(what for what in others if seconds[what] >= 0.05)]
    return ", ".join(f"{what} {duration(seconds[what])}" for what in told)


def millijoule(energy: float, digits: int = 3) -> str:
    """So many digits, in the unit that suits.

    >>> [searchable(millijoule(energy)) for energy in (0.0123, 0.0003212, 4e-6)]
    ['0.0123 mJ', '0.321 µJ', '4.00 nJ']
    """
    if not math.isfinite(energy):
        return NOTHING
    unit, many = energy_unit(energy)
    return f"{significant(many * energy, digits)}\u00a0{unit}"


def energy_unit(energy: float) -> tuple[str, float]:
    """The largest unit of which it is a hundredth or more, and how many make a millijoule.

    >>> energy_unit(0.0123), energy_unit(0.0003212)
    (('mJ', 1.0), ('µJ', 1000.0))
    """
    if not energy or abs(energy) >= 1e-2:
        return "mJ", 1.0
    return ("µJ", 1e3) if abs(energy) >= 1e-5 else ("nJ", 1e6)


def significant(value: float, digits: int = 3) -> str:
    """So many digits that count, without a power of ten while that is readable.

    >>> significant(1234.5), significant(0.01234), significant(9.996), significant(1e-9)
    ('1,234', '0.0123', '10.0', '1.00e-09')
    """
    if not math.isfinite(value):
        return NOTHING
    power = f"{value:.{digits - 1}e}"
    if value and not 1e-5 <= abs(value) < 1e9:
        return power
    return f"{value:,.{max(0, digits - 1 - int(power.partition('e')[2]))}f}"


def searchable(text: str) -> str:
    """With spaces that a search in a log finds.

    >>> searchable(duration(133))
    '2 min 13 s'
    """
    return text.replace("\u00a0", " ")


def capitals(name: str) -> str:
    """A name with its abbreviations, words of four letters at most, in capitals.

    >>> capitals("im-lif"), capitals("qif-learned"), capitals("ternary"), capitals("ce")
    ('IM-LIF', 'QIF-learned', 'ternary', 'CE')
    """
    return "-".join(word.upper() if len(word) <= 4 else word for word in name.split("-"))


def plain(value: object) -> str:
    """A setting as a table shows it.

    >>> plain(True), plain(0.0001), plain("tdbn")
    ('yes', '0.0001', 'tdbn')
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
