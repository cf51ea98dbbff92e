"""The fused kernels against the reference; without a GPU in Triton's interpreter."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from tests.kernel_cases import AXES, check
from tests.pairwise import pairwise

CASES = pairwise(AXES)


def name(case):
    return ", ".join(str(value).removeprefix("torch.") for value in case.values())


def test_the_cases_are_few_and_every_pair_of_choices_meets():
    assert len(CASES) <= 300
    met = {
        (a, str(case[a]), b, str(case[b])) for case in CASES for a in AXES for b in AXES if a < b
    }
    sizes = [len(values) for values in AXES.values()]
    assert len(met) == sum(m * n for i, m in enumerate(sizes) for n in sizes[i + 1 :])


@pytest.mark.parametrize("case", CASES, ids=name)
def test_equals_the_reference(case, device):
    check(case, device)
