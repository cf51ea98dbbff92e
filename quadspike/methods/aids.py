"""Methods that add something while training and leave no trace at inference, or only a start."""

from __future__ import annotations

from quadspike.methods.method import Figure, Method, Source

METHODS = (
    Method(
        key="sml",
        title="SML (surrogate module)",
        kind="aid",
        line="small ordinary networks on the way out teach the layers below; dropped at inference",
        paragraph=(
            "Surrogate gradients err, and the errors add up from layer to layer. Branches of "
            "ordinary convolutions leave the network after some of its blocks, look at the "
            "features' mean over time and classify them, so the layers below get a gradient that "
            "passed no spike on its way. Network and branches also learn from each other's "
            "softened answers. At inference the branches are gone."
        ),
        equation=(
            "L = (1 - lambda) / (1 + N alpha) (CE(q) + alpha sum CE(q_i))\n"
            "    + lambda / (2 N) sum (KL(sg q || q_i) + KL(sg q_i || q)),   at temperature 3\n"
            "q of the network, q_i of branch i of N; sg: no gradient; alpha = 1/2, lambda = 0.9"
        ),
        source=Source(
            "Deng, Lin, Li, Gu",
            "Surrogate module learning: reduce the gradient error accumulation in training "
            "spiking neural networks",
            "ICML",
            2023,
        ),
        differs=(
            "The authors use beta = 1/2, u_th = 1, a surrogate of Dspike's kind, AdamW and "
            "AutoAugment, and choose the blocks that branches follow; here it is every stage but "
            "the last."
        ),
        aid="sml",
        figures=(
            Figure("cifar10", 4, 96.82),
            Figure("cifar100", 4, 79.18),
            Figure("imagenet", 4, 68.25, network="ResNet-34"),
        ),
    ),
    Method(
        key="shortcuts",
        title="Backpropagation shortcuts",
        kind="aid",
        line="a classifier after every stage, weighted less and less as training goes on",
        paragraph=(
            "Branches lead from intermediate stages straight to the output, so that shallow "
            "layers receive a gradient that has not vanished on its way. Their weight falls "
            "during training, and at inference they are gone. The publication could be read only "
            "in part: what a branch consists of, how its answer enters the loss and how the "
            "weight falls are our choice."
        ),
        equation=(
            "L = CE(O, y) + lambda(e) sum over stages l but the last of CE(b_l, y)\n"
            "b_l = mean over t of Linear(mean over space of o_l(t)),   lambda(e) = 1 - e/E"
        ),
        source=Source(
            "Guo, Chen, Hao, Peng, Jie, Zhang, Liu, Ma",
            "Take a shortcut back: mitigating the gradient vanishing for training spiking neural "
            "networks",
            "NeurIPS",
            2024,
        ),
        differs="A reconstruction: branches, their loss and its schedule are not the authors'.",
        status="reconstruction",
        aid="shortcuts",
        figures=(
            Figure("cifar10", 2, 95.19),
            Figure("cifar100", 2, 77.56),
            Figure("imagenet", 4, 67.90, network="ResNet-34"),
        ),
    ),
    Method(
        key="imp-lts",
        title="IMP + LTS",
        kind="aid",
        line="learned membranes to start from, and only the last step's answer counts",
        paragraph=(
            "A static image gives a network that starts at rest little to tell its steps apart. "
            "Here each neuron learns the membrane it starts from, so that early steps differ, "
            "and the loss and the prediction look at the last step only, to which all earlier "
            "ones lead. The learned start is a constant at inference; it fixes the size of the "
            "images."
        ),
        equation=(
            "u(0) learned, one number a neuron, drawn from u_th U(-0.2, 0.2);   L = CE(O(T), y)"
        ),
        source=Source(
            "Shen, Zheng, Wang, Pan",
            "Rethinking the membrane dynamics and optimization objectives of spiking neural "
            "networks",
            "NeurIPS",
            2024,
        ),
        differs=(
            "The authors' network on ImageNet is SEW-ResNet-34 with neurons that do not leak, "
            "reset by subtraction and start from U(0.4, 0.6) at u_th = 1; the start here is that "
            "of their network on CIFAR10-DVS."
        ),
        loss="lts",
        aid="imp",
        figures=(
            Figure(
                "imagenet",
                4,
                68.90,
                network="ResNet-34",
                unlike="the figure is of SEW-ResNet-34, started from the weights of a trained ANN",
            ),
        ),
    ),
)
