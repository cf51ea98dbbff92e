from __future__ import annotations

import torch

from quadspike import create_model
from quadspike.randomness import Key


def test_dropout_and_taps_trace_whole():
    x, key = torch.randn(4, 2, 16, 16), Key(torch.tensor(1), torch.tensor(2))
    model = create_model("vggsnn", in_channels=2, image_size=16, dropout=0.5, seed=0)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    logits, seen = compiled(x, taps=("rate", "mean"), key=key)
    torch.testing.assert_close(logits, model(x, key=key))
    assert len(seen) == 8


def test_a_network_traces_whole_and_gives_the_same_gradients():
    x = torch.randn(4, 3, 8, 8)
    eager, traced = (create_model("resnet8", seed=0) for _ in range(2))
    compiled = torch.compile(traced, backend="aot_eager", fullgraph=True)
    expected, got = eager(x), compiled(x)
    expected.square().sum().backward()
    got.square().sum().backward()
    assert torch.equal(got, expected)
    for ours, theirs in zip(traced.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for ours, theirs in zip(traced.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)
