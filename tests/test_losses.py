from __future__ import annotations

from typing import get_args

import pytest
import torch
import torch.nn.functional as F

from quadspike import QuadspikeError, Soma
from quadspike.call import Call
from quadspike.losses import LOSSES, Level, im, last_cross_entropy, mean_cross_entropy, tet
from quadspike.models.network import Readout
from quadspike.taps import KINDS, Taps

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
    with pytest.raises(QuadspikeError, match=r"\[T, B, classes\]"):
        mean_cross_entropy(torch.zeros(0, 3, 10), torch.zeros(3, dtype=torch.long))
    for labels in (LABELS.float(), LABELS.int(), LABELS.tolist()):
        with pytest.raises(QuadspikeError, match=r"torch.int64, got (torch|list)"):
            tet(LOGITS, labels)
    with pytest.raises(QuadspikeError, match="0 <= weight <= 1"):
        tet(LOGITS, LABELS, weight=2)


def test_lts_is_the_cross_entropy_of_the_last_step_alone():
    expected = torch.logsumexp(LOGITS[1, 0], 0) - 3.0
    torch.testing.assert_close(last_cross_entropy(LOGITS, LABELS), expected)
    logits = LOGITS.clone().requires_grad_()
    last_cross_entropy(logits, LABELS).backward()
    assert not logits.grad[0].any()
    assert logits.grad[1].any()


def test_im_by_hand():
    """Each layer by its own threshold, squared one by one, and averaged over layers."""
    levels = [
        Level(torch.tensor([0.2, 0.4]), 0.5),  # 0.2 below
        Level(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 1.5])),  # 0.5 above the mean of both
    ]
    expected = mean_cross_entropy(LOGITS, LABELS) + 0.1 * (0.2**2 + 0.5**2) / 2
    torch.testing.assert_close(im(LOGITS, LABELS, levels, weight=0.1), expected)


def test_im_moves_the_mean_membrane_to_the_threshold():
    soma = Soma(4, norm=None, neuron="lif")
    x = torch.randn(6, 4, 3, 3) - 1
    shift = torch.zeros((), requires_grad=True)
    call = Call(2, 3, taps=Taps(("mean",)))
    soma(x + shift, call)
    level = Level(call.seen["Soma"]["mean"], soma.neuron.threshold)
    assert level.mean.mean() < 0.5
    im(LOGITS, LABELS, [level]).backward()
    assert shift.grad < 0  # upwards, for it lies below


def test_im_without_a_layer_is_refused():
    with pytest.raises(QuadspikeError, match="taps"):
        im(LOGITS, LABELS, [])


def test_the_registry_s_readouts_and_taps_exist():
    for entry in LOSSES.values():
        assert entry.readout in get_args(Readout)
        assert set(entry.taps) <= set(KINDS)
