from __future__ import annotations

import pytest
import torch

from quadspike import QuadspikeError, Soma


@pytest.mark.parametrize(("timesteps", "shape"), [(None, (3,)), (4, (4, 3))])
def test_fit_gives_every_channel_its_own_and_every_step_its_conductance(timesteps, shape):
    soma = Soma(3, "glif", timesteps=timesteps)
    shapes = {name: tuple(p.shape) for name, p in soma.neuron.named_parameters()}
    assert shapes.pop("conductance_logit") == shape
    assert set(shapes.values()) == {(3,)}
    soma(torch.randn(4, 2, 3, 4, 4)).sum().backward()
    for name, parameter in soma.neuron.named_parameters():
        assert parameter.grad.shape == parameter.shape
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    if timesteps:
        with pytest.raises(QuadspikeError, match="parameters for 4 steps"):
            soma(torch.randn(5, 2, 3, 4, 4))


def test_a_fitted_neuron_says_its_shapes_and_not_its_numbers():
    said = repr(Soma(64, "glif"))
    assert "[64] in 0.2" in said
    assert "u_th=[64] in 0.5..0.5, eta" in said
    assert "tensor" not in said
