"""Who takes part: each a way to run one training step of the same network on the same batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from quadspike.benchmark.neurons import (
    LoopNeuron,
    SnnTorchNeuron,
    SpikingJellyKernels,
    reset_spikingjelly,
    spikingjelly_node,
)
from quadspike.benchmark.rebuild import MakeNeuron, PeerSoma, rebuild
from quadspike.benchmark.setting import Setting
from quadspike.benchmark.timing import Captured, Work
from quadspike.training.distributed import Workers
from quadspike.training.graph import CapturedStep
from quadspike.training.schedule import make_optimizer
from quadspike.training.step import Step, autocast
from quadspike.training.trainee import Trainee, make_loss


@dataclass(frozen=True)
class Contender:
    """A title for tables and how to make the step."""

    title: str
    make: Callable[[Setting, torch.device], Work]
    needs_gpu: bool = False


def own_step(setting: Setting, device: torch.device) -> Step:
    """Our training step."""
    recipe = setting.recipe
    trainee = Trainee(setting.network(device), recipe)
    return Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), device, 1)


def _own_eager(setting: Setting, device: torch.device) -> Work:
    return partial(own_step(setting, device), *setting.batch(device))


def _own_captured(setting: Setting, device: torch.device) -> Work:
    return partial(CapturedStep(own_step(setting, device)), *setting.batch(device))


def _with_lif(make: Callable[[Setting, torch.device], Work]) -> Callable[..., Work]:
    return lambda setting, device: make(setting.but(neuron="lif"), device)


OWN: dict[str, Contender] = {
    "ours": Contender("quadspike, one CUDA graph", _own_captured, needs_gpu=True),
    "ours-eager": Contender("quadspike, eager", _own_eager),
    "lif": Contender("quadspike LIF, one CUDA graph", _with_lif(_own_captured), needs_gpu=True),
    "lif-eager": Contender("quadspike LIF, eager", _with_lif(_own_eager)),
}


def best_own(device: torch.device) -> Contender:
    """Our step as `train` runs it there."""
    return OWN["ours" if device.type == "cuda" else "ours-eager"]


@dataclass(frozen=True)
class Peer:
    """Another library's way with the network."""

    make_neuron: MakeNeuron
    neuron: str
    reset: Callable[[nn.Module], None] | None = None
    compiled: str | None = None
    """Nothing, its "neurons" one by one, or the whole "network"."""
    captured: bool = False

    def __call__(self, setting: Setting, device: torch.device) -> Work:
        setting = setting.but(neuron=self.neuron)
        static = setting.geometry.static
        model: nn.Module = rebuild(setting.network(device), static, self.make_neuron)
        model.to(device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        step = PeerStep(setting, device, model, self.reset)
        if self.compiled:
            torch.compiler.reset()
            torch._dynamo.config.recompile_limit = 32  # one compilation a shape of activations
            self._compile(step)
        return Captured(step) if self.captured else step

    def _compile(self, step: PeerStep) -> None:
        if self.compiled == "network":
            step.run = torch.compile(step.model, dynamic=False)
            return
        for module in step.model.modules():
            if isinstance(module, PeerSoma):
                module.neuron.compile(dynamic=False)


class PeerStep:
    """Forward, loss, backward and update, with the optimizer and the loss that ours has."""

    def __init__(
        self,
        setting: Setting,
        device: torch.device,
        model: nn.Module,
        reset: Callable[[nn.Module], None] | None,
    ) -> None:
        self.recipe, self.device = setting.recipe, device
        self.model, self.reset = model, reset
        self.run: Callable[..., torch.Tensor] = model
        self.loss = make_loss(setting.recipe)
        self.optimizer = make_optimizer(setting.recipe, model)
        self.inputs, self.labels = setting.batch(device)

    def __call__(self) -> None:
        if self.reset is not None:
            self.reset(self.model)
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.recipe, self.device):
            loss = self.loss(self.run(self.inputs), self.labels)
        loss.backward()
        self.optimizer.step()


def _peer(title: str, peer: Peer) -> Contender:
    return Contender(title, peer, needs_gpu=peer.compiled is not None or peer.captured)


_LOOP = partial(Peer, LoopNeuron, "qif")
_NODE = partial(Peer, spikingjelly_node, reset=reset_spikingjelly)
_KERNELS = partial(Peer, SpikingJellyKernels)
PEERS: dict[str, Contender] = {
    "loop": _peer("PyTorch, a loop over T", _LOOP()),
    "loop-neurons": _peer("the same, each neuron compiled", _LOOP(compiled="neurons")),
    "loop-network": _peer("the same, the network compiled", _LOOP(compiled="network")),
    "sj-lif": _peer("SpikingJelly LIF", _NODE(neuron="lif")),
    "sj-lif-compiled": _peer(
        "SpikingJelly LIF, network compiled", _NODE(neuron="lif", compiled="network")
    ),
    "sj-qif": _peer("SpikingJelly QIF", _NODE(neuron="qif")),
    "sj-lif-kernels": _peer("SpikingJelly LIF kernels", _KERNELS(neuron="lif")),
    "sj-qif-kernels": _peer("SpikingJelly QIF kernels", _KERNELS(neuron="qif")),
    "sj-lif-kernels-compiled": _peer(
        "SpikingJelly LIF kernels, network compiled", _KERNELS(neuron="lif", compiled="network")
    ),
    "sj-qif-compiled": _peer(
        "SpikingJelly QIF, network compiled", _NODE(neuron="qif", compiled="network")
    ),
    "snntorch": _peer("snnTorch LIF", Peer(SnnTorchNeuron, "lif")),
    "sj-lif-graph": _peer(
        "SpikingJelly LIF, network compiled, our CUDA graph around it",
        _NODE(neuron="lif", compiled="network", captured=True),
    ),
}
