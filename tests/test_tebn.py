from __future__ import annotations

import pytest
import torch
from torch import nn

from quadspike import QuadspikeError, Soma, create_model
from quadspike.norms import TEBatchNorm


@pytest.mark.parametrize("backend", ["reference", "vectorised"])
def test_a_soma_is_the_neuron_behind_the_norm(backend):
    soma = Soma(3, "lif", norm="tebn", timesteps=4, backend=backend)
    nn.init.uniform_(soma.norm.p, -1, 2)
    x = torch.randn(4, 8, 3, 5, 5)
    assert soma.explain().backend == backend
    for steps in (4, 3):
        assert torch.equal(soma(x[:steps]), soma.neuron(soma.norm(x[:steps])))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Soma(3, norm="tebn"), "give timesteps"),
        (lambda: TEBatchNorm(3, timesteps=0), "timesteps must be"),
        (lambda: TEBatchNorm(3, timesteps=2)(torch.zeros(3, 4, 3)), "for 2 steps, step 3"),
        (lambda: TEBatchNorm(3, timesteps=2)(torch.zeros(4, 3)), r"takes \[T, B, C\]"),
        (lambda: Soma(3, norm="tebn", timesteps=1)(torch.zeros(2, 4, 3)), "for 1 steps, step 2"),
        (
            lambda: create_model(
                "resnet8", norm="tebn", residual="sum-then-fire", shortcut_neuron=False
            ),
            "needs a neuron",
        ),
    ],
)
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(QuadspikeError, match=message):
        act()
