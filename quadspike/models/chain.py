"""Modules in order, those that need it told about time."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from quadspike.call import Call, Timed
from quadspike.errors import QuadspikeError
from quadspike.neurons import Neuron
from quadspike.randomness import fresh_key, of_batch
from quadspike.soma import Soma


class Chain(nn.Sequential, Timed):
    """`nn.Sequential` whose timed members also receive the call.

    A residual given to the chain enters its last member, a soma or another chain.
    """

    def forward(  # type: ignore[override]
        self, x: Tensor, call: Call, residual: Tensor | None = None
    ) -> Tensor:
        return run_in_order(self, x, call, residual)


def run_in_order(
    modules: Iterable[nn.Module], x: Tensor, call: Call, residual: Tensor | None
) -> Tensor:
    """One module after the other; a plain `nn.Sequential` among them is a chain too."""
    members = list(modules)
    if residual is not None and not (members and isinstance(members[-1], Soma | nn.Sequential)):
        last = type(members[-1]).__name__ if members else "nothing"
        raise QuadspikeError(
            f"a residual enters the soma that ends a chain, but this one ends in {last}"
        )
    for index, module in enumerate(members):
        late = residual if index == len(members) - 1 else None
        if isinstance(module, Soma):
            x = module(x, call, late)
        elif isinstance(module, nn.Sequential):
            x = run_in_order(module, x, call, late)
        elif isinstance(module, Timed):
            x = module(x, call)
        elif isinstance(module, Neuron):
            raise QuadspikeError(
                f"a chain cannot run a {type(module).__name__}, which would take the batch for "
                "time; put it into a soma, Soma(channels, neuron, norm=None) or with a norm"
            )
        else:
            if type(module) is nn.Linear and x.shape[-1] != module.in_features:
                raise QuadspikeError(
                    f"layer {call.name(module)!r} is for {module.in_features} numbers a sample, "
                    f"got {x.shape[-1]}: the input is of another size than the network was made for"
                )
            x = module(x)
    return x


class Dropout(Timed):
    """Dropout whose mask is a function of the call's key and the layer, one for all steps.

    A sample's mask follows its place in the step's batch, `key.first` on.
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not (isinstance(p, int | float) and 0 <= p < 1):
            raise QuadspikeError(f"dropout needs 0 <= p < 1, got {p!r}")
        self.p = p

    def forward(self, x: Tensor, call: Call) -> Tensor:
        label = call.visit(self)
        if not self.training or self.p == 0:
            return x
        if call.key is None:
            call.key = fresh_key()
        draws = of_batch((call.batch, *x.shape[1:]), call.key, label, x.device)
        mask = (draws >= self.p).to(x.dtype) / (1 - self.p)
        return (x.view(-1, *mask.shape) * mask).view(x.shape)

    def extra_repr(self) -> str:
        return f"p={self.p}"
