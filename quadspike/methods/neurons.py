"""Methods that change the neuron."""

from __future__ import annotations

from quadspike.methods.method import Figure, Method, Source

_TERNARY = Source(
    "Guo, Chen, Liu, Peng, Zhang, Huang, Ma",
    "Ternary spike: learning ternary spikes for spiking neural networks",
    "AAAI",
    2024,
)
_TERNARY_DIFFERS = (
    "The authors' ResNet-19 has a stem of 128 channels and no 256-unit layer; the tables do not "
    "say whether their spikes were plain or trained."
)

METHODS = (
    Method(
        key="plif",
        title="PLIF",
        kind="neuron",
        line="LIF that learns its time constant, one a layer",
        paragraph=(
            "The leak is learned: each layer has one number w, and the membrane moves towards "
            "its input by the share sigmoid(w) a step. The same share scales the input, so a "
            "layer that learns to remember longer also listens more softly. At a time constant "
            "of 2, where it starts, it is LIF with beta = 1/2 and halved input."
        ),
        equation=(
            "u(t) = v + sigmoid(w) (I(t) - v),   v = u(t-1) (1 - o(t-1)),   o(t) = [u(t) >= u_th]\n"
            "do/du := alpha / (2 (1 + (pi alpha (u - u_th) / 2)^2)),   alpha = 2;   no gradient "
            "through the reset"
        ),
        source=Source(
            "Fang, Yu, Chen, Masquelier, Huang, Tian",
            "Incorporating learnable membrane time constant to enhance learning of spiking neural "
            "networks",
            "ICCV",
            2021,
        ),
        differs=(
            "The authors use u_th = 1 and plain batch normalisation; with u_th = 1/2 behind tdBN "
            "the halved input fires less often than another neuron's."
        ),
        neuron="plif",
        detach_reset=True,
        figures=(
            Figure(
                "cifar10",
                8,
                93.50,
                unlike="the figure is of the authors' own network of six convolutions and two "
                "linear layers, trained on the squared error of firing rates",
            ),
        ),
    ),
    Method(
        key="glif",
        title="GLIF",
        kind="neuron",
        line="LIF with learned gates between two kinds of leak, of input and of reset",
        paragraph=(
            "Three gates for each channel blend an exponential leak with a linear one, plain "
            "input with input weighted by step, and a hard reset with a soft one; leak, "
            "threshold, reset height and the weights of the steps are learned too, all through "
            "sigmoids. With the gates at their ends it is LIF. Gates and numbers are constants "
            "at inference."
        ),
        equation=(
            "u(t) = (1 - A (1 - tau)) u(t-1) (1 - G o(t-1)) - (1 - A) l\n"
            "       + I(t) (1 - B (1 - g(t))) - (1 - G) u_re o(t-1),   o(t) = [u(t) >= u_th]\n"
            "A, B, G, tau, l, g(t), u_re, u_th each the sigmoid of a parameter of its channel"
        ),
        source=Source(
            "Yao, Li, Mo, Cheng",
            "GLIF: a unified gated leaky integrate-and-fire neuron for spiking neural networks",
            "NeurIPS",
            2022,
        ),
        differs=(
            "The authors' ResNet-19 has a stem of 128 channels, normalised identity shortcuts and "
            "no 256-unit spiking layer; they use no cutout and batches of 72."
        ),
        neuron="glif",
        figures=(
            Figure("cifar10", 2, 94.44),
            Figure("cifar10", 4, 94.85),
            Figure("cifar100", 2, 75.48),
            Figure("cifar100", 4, 77.05),
            Figure("imagenet", 4, 67.52, network="ResNet-34"),
            Figure(
                "cifar10-dvs",
                16,
                78.10,
                unlike="the figure is of SEW wide-7B-Net with other constants, not of ResNet-19",
            ),
        ),
    ),
    Method(
        key="lsg",
        title="LSG",
        kind="neuron",
        line="LIF that learns its leak, the surrogate's width following it",
        paragraph=(
            "Under normalised input the membrane's spread is known from the leak, and a "
            "surrogate as wide as that spread reaches most membranes without blurring. So the "
            "leak is learned, one number a layer, and the width of the rectangle around the "
            "threshold is computed from it; the width itself gets no gradient."
        ),
        equation=(
            "u(t) = beta u(t-1) (1 - o(t-1)) + I(t),   beta = sigmoid(b), 0.2 at the start\n"
            "do/du := [|u - u_th| <= alpha/2] / alpha,   alpha = 2 u_th sqrt(1 + beta^2)"
        ),
        source=Source(
            "Lian, Shen, Liu, Wang, Yan, Tang",
            "Learnable surrogate gradient for direct training spiking neural networks",
            "IJCAI",
            2023,
        ),
        differs="No code is public; the equations are taken from a report of the publication.",
        neuron="lsg",
        figures=(
            Figure("cifar10", 2, 94.41),
            Figure("cifar10", 4, 95.17),
            Figure("cifar100", 2, 76.32),
            Figure("cifar100", 4, 76.85),
            Figure(
                "cifar10-dvs",
                10,
                77.90,
                network="VGGSNN",
                unlike="the authors name ResNet-19 in one place and VGGSNN in another",
            ),
        ),
    ),
    Method(
        key="im-lif",
        title="IM-LIF",
        kind="neuron",
        line="LIF whose current remembers, by an attention over time",
        paragraph=(
            "The synaptic current has a memory: what arrived one step earlier is added with a "
            "weight that a small attention network computes from the currents' means over space "
            "and channels. Only the publication's summary could be read, so the attention is our "
            "reconstruction, causal unless told otherwise, and its own temporal loss is left out."
        ),
        equation=(
            "I(1) = X(1),   I(t) = X(t) + a(t) I(t-1),   a = sigmoid(W2 relu(W1 s)),   "
            "s(t) = mean of X(t)\n"
            "then LIF with beta = 1/4, u_th = 1/2"
        ),
        source=Source(
            "Lian, Shen, Wang, Tang",
            "IM-LIF: improved neuronal dynamics with attention mechanism for direct training deep "
            "spiking neural network",
            "IEEE TETCI",
            2024,
        ),
        differs="A reconstruction from the summary alone, without the authors' loss.",
        status="reconstruction",
        neuron="im-lif",
        energy_note="the attention's own arithmetic is not billed",
        figures=(Figure("cifar10", 3, 95.29), Figure("cifar100", 3, 77.21)),
    ),
    Method(
        key="ternary",
        title="Ternary spike",
        kind="neuron",
        line="spikes of -1, 0 and 1",
        paragraph=(
            "A membrane below minus the threshold fires too, with a spike of -1: more "
            "information in a spike, and still no multiplication, since a sign only turns an "
            "addition into a subtraction. Either spike resets. With input that is never negative "
            "it is the binary neuron."
        ),
        equation=(
            "u(t) = beta u(t-1) (1 - |o(t-1)|) + I(t),   o(t) = sign(u(t)) [|u(t)| >= u_th]\n"
            "do/du := [|u| <= 1],   beta = 1/4, u_th = 1/2"
        ),
        source=_TERNARY,
        differs=_TERNARY_DIFFERS,
        neuron="ternary",
        spikes="-1, 0, 1",
        energy_note="spikes of both signs count, each as one accumulate",
        figures=(
            Figure("cifar10", 2, 95.80),
            Figure("cifar100", 2, 80.20),
            Figure("imagenet", 4, 70.74, network="ResNet-34"),
            Figure("cifar10-dvs", 10, 79.84),
        ),
    ),
    Method(
        key="ternary-trained",
        title="Ternary spike, trained",
        kind="neuron",
        line="the same with a learned height of the spikes, one a layer",
        paragraph=(
            "What a layer emits is its ternary spike times a learned number that starts at 1; "
            "the reset follows the spike itself. Weights that read the spikes could take the "
            "number in at inference, so that they are whole again, except where an identity "
            "shortcut adds them to a membrane; `deploy.fold` leaves it where it is."
        ),
        equation="the ternary neuron; emitted: alpha o(t), alpha learned, 1 at the start",
        source=_TERNARY,
        differs=_TERNARY_DIFFERS,
        neuron="ternary-trained",
        spikes="-alpha, 0, alpha",
        energy_note=(
            "spikes of both signs count, each as one accumulate: alpha folds into the weights that "
            "read them; sums of spikes of different heights are billed as multiply-accumulates"
        ),
    ),
)
