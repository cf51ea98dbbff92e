from __future__ import annotations

from typing import get_args

import pytest
import torch

from quadspike import QuadspikeError, Soma
from quadspike.call import Call
from quadspike.losses import LOSSES, Level, im, mean_cross_entropy, tet
from quadspike.models.network import Readout
from quadspike.taps import KINDS, Taps

LOGITS = torch.tensor([[[1.0, 2.0, 0.5]], [[0.0, -1.0, 3.0]]])
LABELS = torch.tensor([2])


def test_losses_of_half_precision_are_computed_in_float32():
    logits, labels = torch.randn(2, 64, 10).bfloat16(), torch.randint(10, (64,))
    for loss in (mean_cross_entropy, tet):
        assert loss(logits, labels).dtype == torch.float32
        torch.testing.assert_close(loss(logits, labels), loss(logits.float(), labels))


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
