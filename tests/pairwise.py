"""A small set of cases in which every pair of choices meets."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import combinations
from typing import Any

Case = dict[str, Any]


def pairwise(axes: dict[str, list[Any]]) -> list[Case]:
    """Greedy: begin each case with a pair not met yet, fill it with what meets most others."""
    names = list(axes)
    missing = {
        (a, i, b, j)
        for a, b in combinations(names, 2)
        for i in range(len(axes[a]))
        for j in range(len(axes[b]))
    }
    cases = []
    while missing:
        a, i, b, j = min(missing, key=lambda pair: (names.index(pair[0]), *map(str, pair)))
        chosen = {a: i, b: j}
        for name in names:
            if name not in chosen:
                chosen[name] = max(
                    range(len(axes[name])),
                    key=lambda k, name=name: len(missing & _pairs({**chosen, name: k}, names)),
                )
        missing -= _pairs(chosen, names)
        cases.append({name: axes[name][chosen[name]] for name in names})
    return cases


def _pairs(chosen: dict[str, int], names: list[str]) -> set[tuple[str, int, str, int]]:
    present = [name for name in names if name in chosen]
    return {(a, chosen[a], b, chosen[b]) for a, b in combinations(present, 2)}


def covering(cases: list[Case]) -> list[Case]:
    """A small part of `cases` in which every pair of choices that meets in any of them meets.

    For choices that do not all go together. Greedy: next is the case with most pairs not met yet.
    """

    def pairs(case: Case) -> set[tuple[tuple[str, Any], ...]]:
        return set(combinations(case.items(), 2))

    missing = set().union(*map(pairs, cases))
    chosen = []
    # What a case would add only gets less, so an old count is an upper bound.
    queue = [(-len(pairs(case)), index) for index, case in enumerate(cases)]
    while missing:
        _, index = heappop(queue)
        new = len(missing & pairs(cases[index]))
        if queue and -new > queue[0][0]:
            heappush(queue, (-new, index))
            continue
        chosen.append(cases[index])
        missing -= pairs(cases[index])
    return chosen
