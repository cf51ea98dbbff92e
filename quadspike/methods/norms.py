"""The baseline, and methods that change the normalisation."""

from __future__ import annotations

from quadspike.methods.method import Figure, Method, Source

METHODS = (
    Method(
        key="lif",
        title="LIF",
        kind="neuron",
        line="leaky neurons behind plain batch normalisation: no method at all",
        paragraph=(
            "The common ground: a membrane that decays by a fixed factor, resets to zero when it "
            "fires, and passes its gradient through a rectangle around the threshold, trained by "
            "backpropagation through space and time. Normalisation is that of any network, over "
            "batch, time and space, and knows nothing of the threshold."
        ),
        equation=(
            "u(t) = beta u(t-1) (1 - o(t-1)) + I(t),   o(t) = [u(t) >= u_th]\n"
            "do/du := [|u - u_th| <= 1/2],   beta = 1/4, u_th = 1/2"
        ),
        source=Source(
            "Wu, Deng, Li, Zhu, Shi",
            "Spatio-temporal backpropagation for training high-performance spiking neural networks",
            "Frontiers in Neuroscience",
            2018,
        ),
        differs=(
            "The authors trained shallow networks without batch normalisation; the paper's "
            "tables have no such row."
        ),
        norm="bn",
    ),
    Method(
        key="stbp-tdbn",
        title="STBP-tdBN",
        kind="norm",
        line="LIF behind batch normalisation scaled to the threshold: what the others build on",
        paragraph=(
            "Batch normalisation with statistics over time as well, scaled so that the input of "
            "a neuron has the threshold as its standard deviation: neither silent nor saturated "
            "layers at any depth. Where two normalised branches meet, each is scaled by one over "
            "the square root of two. At inference it folds into the synapse before it. In this "
            "comparison it is the setting that the methods below change, in the fields they name."
        ),
        equation=(
            "y = gamma eta u_th (x - E[x]) / sqrt(Var[x] + eps) + xi,   E, Var over (T, B, H, W)\n"
            "eta = 1 in a chain, 1 / sqrt(2) for two branches that are summed before a neuron"
        ),
        source=Source(
            "Zheng, Wu, Deng, Hu, Li",
            "Going deeper with directly-trained larger spiking neural networks",
            "AAAI",
            2021,
        ),
        differs=(
            "The authors' ResNet-19 has a stem of 128 channels and no neurons on its shortcuts."
        ),
        figures=(
            Figure("cifar10", 6, 93.16),
            Figure("cifar100", 6, 71.12),
            Figure("imagenet", 6, 63.72, network="ResNet-34"),
            Figure("cifar10-dvs", 10, 67.80),
        ),
    ),
    Method(
        key="tebn",
        title="TEBN",
        kind="norm",
        line="batch normalisation with a learned factor for every step",
        paragraph=(
            "One set of statistics for all steps, and one learned number a step and layer that "
            "scales what is normalised, starting at 1: the distribution may change over time. "
            "The factors differ from step to step, so at inference one set of weights cannot "
            "hold them; a network needs weights a step, or a multiplication that is not free."
        ),
        equation=(
            "y(t) = p(t) (gamma (x(t) - E[x]) / sqrt(Var[x] + eps) + xi)\n"
            "E, Var over (T, B, H, W);   p learned, T numbers a layer, all 1 at the start"
        ),
        source=Source(
            "Duan, Ding, Chen, Yu, Huang",
            "Temporal effective batch normalization in spiking neural networks",
            "NeurIPS",
            2022,
        ),
        differs=(
            "The authors use u_th = 1, a triangular surrogate, dropout, and a ResNet-19 with a "
            "stem of 128 channels and normalised identity shortcuts."
        ),
        norm="tebn",
        energy_note=(
            "the factor of each step cannot fold into one set of weights; its multiplications "
            "are not billed"
        ),
        figures=(
            Figure("cifar10", 4, 94.71),
            Figure("cifar100", 4, 76.41),
            Figure(
                "imagenet",
                4,
                68.28,
                network="ResNet-34",
                unlike="the figure is believed to be of SEW-ResNet-34",
            ),
            Figure(
                "cifar10-dvs",
                10,
                84.90,
                network="VGGSNN",
                unlike="tested on the first 100 recordings of each class, an easier split",
            ),
        ),
    ),
    Method(
        key="mpbn",
        title="MPBN",
        kind="norm",
        line="a second normalisation on the membrane, before it meets the threshold",
        paragraph=(
            "Leak and reset undo what normalising the input achieved, so the membrane itself is "
            "normalised again, step by step, before it is compared with the threshold; the state "
            "that is carried on stays the raw one. At inference the second normalisation "
            "disappears into a threshold for each channel; where its gain is negative the "
            "comparison turns around."
        ),
        equation=(
            "u(t) = beta u(t-1) (1 - o(t-1)) + I(t),   v(t) = BN(u(t)),   o(t) = [v(t) >= u_th]\n"
            "I(t) behind plain batch normalisation;   BN with the statistics of step t\n"
            "folded: u >= (u_th - xi) sqrt(Var + eps) / gamma + E for gamma > 0, "
            "<= for gamma < 0"
        ),
        source=Source(
            "Guo, Zhang, Chen, Peng, Liu, Zhang, Huang, Ma",
            "Membrane potential batch normalization for spiking neural networks",
            "ICCV",
            2023,
        ),
        differs=(
            "The authors use the Dspike surrogate, AutoAugment on CIFAR-10 too, and a ResNet-19 "
            "with a stem of 128 channels and no 256-unit layer."
        ),
        norm="mpbn",
        figures=(
            Figure("cifar10", 2, 96.47),
            Figure("cifar100", 2, 79.51),
            Figure("imagenet", 4, 64.71, network="ResNet-34"),
        ),
    ),
)
