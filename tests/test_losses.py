from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from quadspike import QuadspikeError
from quadspike.losses import mean_cross_entropy, tet

LOGITS = torch.tensor([[[1.0, 2.0, 0.5]], [[0.0, -1.0, 3.0]]])
LABELS = torch.tensor([2])


def test_mean_cross_entropy_by_hand():
    mean = torch.tensor([0.5, 0.5, 1.75])
    expected = torch.logsumexp(mean, 0) - 1.75
    torch.testing.assert_close(mean_cross_entropy(LOGITS, LABELS), expected)


def test_tet_by_hand():
    each = [torch.logsumexp(step[0], 0) - step[0, 2] for step in LOGITS]
    expected = 0.9 * (each[0] + each[1]) / 2 + 0.1 * ((LOGITS - 0.5) ** 2).mean()
    torch.testing.assert_close(tet(LOGITS, LABELS, weight=0.1, target=0.5), expected)


def test_tet_gives_every_step_of_every_sample_its_own_label():
    logits, labels = torch.randn(3, 4, 5), torch.tensor([0, 4, 2, 1])
    each = [
        F.cross_entropy(logits[t, b][None], labels[b][None]) for t in range(3) for b in range(4)
    ]
    torch.testing.assert_close(tet(logits, labels, weight=0.0), torch.stack(each).mean())


def test_losses_of_half_precision_are_computed_in_float32():
    logits, labels = torch.randn(2, 64, 10).bfloat16(), torch.randint(10, (64,))
    for loss in (mean_cross_entropy, tet):
        assert loss(logits, labels).dtype == torch.float32
        torch.testing.assert_close(loss(logits, labels), loss(logits.float(), labels))


def test_tet_of_one_step_without_its_regulariser_is_cross_entropy():
    one = torch.randn(1, 4, 10)
    labels = torch.randint(10, (4,))
    torch.testing.assert_close(tet(one, labels, weight=0.0), F.cross_entropy(one[0], labels))


def test_bad_input_is_refused():
    with pytest.raises(QuadspikeError, match=r"\[T, B, classes\]"):
        mean_cross_entropy(torch.zeros(3, 10), torch.zeros(3, dtype=torch.long))
    with pytest.raises(QuadspikeError, match="0 <= weight <= 1"):
        tet(LOGITS, LABELS, weight=2)
