"""Methods that change the loss, or how a spike passes a gradient back."""

from __future__ import annotations

from quadspike.methods.method import Figure, Method, Source

_LOCAL_ZO = Source(
    "Mukhoty, Bojkovic, de Vazelhes, Zhao, De Masi, Xiong, Gu",
    "Direct training of SNN using local zeroth order method",
    "NeurIPS",
    2023,
)
_LOCAL_ZO_DIFFERS = (
    "The authors use beta = 1/2 and u_th = 1 behind plain batch normalisation, Adam and batches "
    "of 64; the cutout on CIFAR-100 is 8 pixels."
)

METHODS = (
    Method(
        key="tet",
        title="TET",
        kind="loss",
        line="every step's logits answer for themselves, not only their mean",
        paragraph=(
            "Cross-entropy is taken of each step's logits and averaged, instead of being taken "
            "of the averaged logits: a step that is wrong is told so even where the mean is "
            "right, which leads to flatter minima. A small second term pulls all logits towards "
            "a constant, against outliers. Prediction still uses the mean. With lambda = 0 and "
            "one step it is plain cross-entropy."
        ),
        equation="L = (1 - lambda) mean over t of CE(O(t), y) + lambda mean of (O - phi)^2",
        source=Source(
            "Deng, Li, Zhang, Gu",
            "Temporal efficient training of spiking neural network via gradient re-weighting",
            "ICLR",
            2022,
        ),
        differs=(
            "The authors use beta = 1/2, u_th = 1, a triangular surrogate and plain batch "
            "normalisation."
        ),
        loss="tet",
        figures=(
            Figure("cifar10", 6, 94.50),
            Figure("cifar100", 6, 74.72),
            Figure(
                "imagenet",
                6,
                68.00,
                network="ResNet-34",
                unlike="the figure is believed to be of SEW-ResNet-34 at T = 4",
            ),
            Figure("cifar10-dvs", 10, 77.40, network="VGGSNN"),
        ),
    ),
    Method(
        key="im-loss",
        title="IM-Loss",
        kind="loss",
        line="pulls each layer's mean membrane to the threshold, with a surrogate that sharpens",
        paragraph=(
            "A spike carries most information when it occurs half of the time, so a term of the "
            "loss pulls each layer's mean membrane to its threshold. The surrogate is the slope "
            "of a hyperbolic tangent whose steepness grows over the epochs: wide gradients "
            "first, faithful ones at the end."
        ),
        equation=(
            "L = CE + lambda mean over layers of (mean(u) - u_th)^2,   lambda = 0.005\n"
            "do/du := K/2 (1 - tanh^2(K (u - u_th)))\n"
            "K(i) = ((10^(i/N) - 1) K_max + (10 - 10^(i/N)) K_min) / 9,   K from 1 to 10"
        ),
        source=Source(
            "Guo, Chen, Zhang, Liu, Wang, Huang, Ma",
            "IM-Loss: information maximization loss for spiking neural networks",
            "NeurIPS",
            2022,
        ),
        differs=(
            "The equations are the publication's as we remember it; the weight of the loss is that "
            "of the released code, which takes it of input currents and has a fixed Dspike "
            "surrogate instead."
        ),
        surrogate="evolving",
        loss="im",
        figures=(
            Figure("cifar10", 2, 93.85),
            Figure("cifar100", 2, 70.18, unlike="the figure is believed to be of VGG-16 at T = 5"),
            Figure(
                "imagenet",
                6,
                67.43,
                network="ResNet-34",
                unlike="the figure is believed to be of ResNet-18",
            ),
            Figure("cifar10-dvs", 10, 72.60),
        ),
    ),
    Method(
        key="local-zo",
        title="LocalZO",
        kind="surrogate",
        line="a random finite difference in place of a surrogate; on average a Gaussian",
        paragraph=(
            "Instead of choosing a surrogate, the step function's slope is measured: how far a "
            "random nudge of the membrane would have changed the spike, averaged over a few "
            "draws. On average that is a Gaussian of width delta, but an element gets exactly zero "
            "where no draw reaches the threshold, which makes the backward pass sparse: about a "
            "third of them under tdBN at the start, more with fewer draws. Here every draw is a "
            "function of the seed, the step, the layer and its place, so runs repeat."
        ),
        equation=(
            "do/du := 1/m sum over k of [|u - u_th| < delta |z_k|] |z_k| / (2 delta)\n"
            "z_k ~ N(0, 1),   delta = 1/2, m = 5\n"
            "on average exp(-(u - u_th)^2 / (2 delta^2)) / (delta sqrt(2 pi))"
        ),
        source=_LOCAL_ZO,
        differs=f"{_LOCAL_ZO_DIFFERS} The paper's tables have it with TET only.",
        surrogate="local-zo",
    ),
    Method(
        key="local-zo-tet",
        title="LocalZO + TET",
        kind="surrogate",
        line="the same with the TET loss, as the paper's tables have it",
        paragraph="TET and LocalZO together: neither replaces the other.",
        equation="the surrogate of LocalZO with the loss of TET",
        source=_LOCAL_ZO,
        differs=_LOCAL_ZO_DIFFERS,
        surrogate="local-zo",
        loss="tet",
        figures=(
            Figure("cifar10", 2, 95.03),
            Figure("cifar100", 2, 76.36),
            Figure("cifar10-dvs", 10, 75.62, network="VGGSNN"),
        ),
    ),
    Method(
        key="dspike",
        title="Dspike",
        kind="surrogate",
        line="the slope of a hyperbolic tangent cut to the unit interval",
        paragraph=(
            "A hyperbolic tangent, stretched to run exactly from 0 to 1 across an interval of unit "
            "length around the threshold, and its slope as the surrogate. Its temperature b "
            "moves it between a straight line and a step. The paper's tables have no row for it, "
            "but MPBN and IM-Loss's code train with it and SML with a relative."
        ),
        equation=(
            "do/du := b (1 - tanh^2(b v)) / (2 tanh(b/2)) where |v| <= 1/2, else 0\n"
            "v = u - u_th,   b = 3"
        ),
        source=Source(
            "Li, Guo, Zhang, Deng, Hai, Gu",
            "Differentiable spike: rethinking gradient-descent for training spiking neural "
            "networks",
            "NeurIPS",
            2021,
        ),
        differs=(
            "The authors adapt b from finite differences while training; here it stays fixed, "
            "as in the code of those who took it up."
        ),
        surrogate="dspike",
    ),
)
