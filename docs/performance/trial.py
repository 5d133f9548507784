"""Measure one trial in this process: ``python docs/performance/trial.py DETECTOR WHAT [EPOCHS]`` prints JSON.

The trial is that of protocol `published` on SKAB with seed 0, without box, judge and store: construct, fit, score the
training recordings, score the test recordings. WHAT is

- ``cost``: CPU seconds of the three parts, beside those of the reference loop in the same process;
- ``products``: floating-point operations in matrix products and convolutions;
- ``profile``: the share of the CPU time by kind of operation.

It imports only what versions from commit 51ef0b2 on have, so that `measure.py` can run it on an older version.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.plan import contender_from_label
from tsadbench.registry import load_protocol

# Operations by what they do, by the beginnings of PyTorch's names; anything else is "other".
KINDS = {
    "products": "_linear_pointwise addmm mm bmm baddbmm matmul linear mkldnn_convolution _slow_conv2d einsum "
    "convolution thnn_conv2d mkldnn_rnn_layer slow_conv _convolution addbmm addmv mv dot",
    "element-wise": "sigmoid tanh mul add sub rsub div relu leaky_relu elu selu lerp addcmul square pow sqrt exp log "
    "neg threshold eq ge gt le lt where clamp maximum abs sign masked_fill silu softplus erf gelu "
    "logical_not bitwise_not reciprocal rsqrt addcdiv nan_to_num isnan _cdist",
    "reductions": "sum mean amax amin max min softmax _softmax log_softmax native_batch_norm native_layer_norm "
    "logsumexp norm linalg_vector_norm nansum var std argmax batch_norm cumsum mse_loss max_pool "
    "topk sort",
    "copies": "copy_ cat stack clone contiguous index index_select index_put gather scatter fill_ zero_ zeros "
    "ones repeat slice_backward select_backward constant_pad_nd col2im im2col unfold_backward "
    "scatter_add index_add flip roll full arange tril triu",
    "random": "random uniform normal bernoulli native_dropout exponential randperm randn rand",
    "optimiser": "_foreach _fused optimizer",
}


def reference_loop() -> float:
    """Return the CPU seconds of 100 rounds of plain float32 products and element-wise operations, the unit."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(128, 128, generator=generator) / 16
    state = torch.randn(128, 2_048, generator=generator)
    with torch.inference_mode():
        start = time.process_time()
        for _ in range(100):
            state = (weight @ state).sigmoid_().mul_(2.0).sub_(1.0)
        return time.process_time() - start


def product_rate() -> float:
    """Return the best rate of a float32 product of two 1,024 x 1,024 matrices, in operations per CPU second.

    PyTorch has two libraries for products, and neither is the faster one on every processor.
    """
    left, right = torch.randn(2, 1_024, 1_024)
    ways: list[Callable[[], object]] = [lambda: left @ right]
    if hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        ways.append(lambda: torch.ops.mkldnn._linear_pointwise(left, right, None, "none", [], ""))
    rates = []
    with torch.inference_mode():
        for way in 10 * ways:
            start = time.process_time()
            way()
            rates.append(2 * 1_024**3 / (time.process_time() - start))
    return max(rates)


def lstm_operations(inputs: torch.Size, by_input: torch.Size, by_state: torch.Size, *_: object, **__: object) -> int:
    """Return the operations of oneDNN's LSTM layer: at each step, inputs and state by the weights of four gates."""
    n_steps, n_sequences, _ = inputs
    return 2 * n_steps * n_sequences * (math.prod(by_input) + math.prod(by_state))


def lstm_backward_operations(*shapes: torch.Size, **keywords: object) -> int:
    """Return those of its backward pass: one product for the gradient of the weights, one for that of the states."""
    return 2 * lstm_operations(*shapes, **keywords)


def added_operations(_: torch.Size, left: torch.Size, right: torch.Size, *__: object, **___: object) -> int:
    """Return those of a product, or a batch of products, that is added to a tensor."""
    return 2 * math.prod(left) * right[-1]


def linear_operations(inputs: torch.Size, weight: torch.Size, *_: object, **__: object) -> int:
    """Return those of oneDNN's product ``inputs @ weight.T``."""
    return 2 * math.prod(inputs) * weight[0]


# What PyTorch's counter does not know: products that add to a tensor in place, and oneDNN's layers.
UNCOUNTED = {
    torch.ops.aten.addmm_: added_operations,
    torch.ops.aten.baddbmm_: added_operations,
    torch.ops.aten.mkldnn_rnn_layer: lstm_operations,
    torch.ops.aten.mkldnn_rnn_layer_backward: lstm_backward_operations,
    torch.ops.mkldnn._linear_pointwise: linear_operations,
}


class Trial:
    """A detector and the one episode of protocol `published` on SKAB.

    Parameters
    ----------
    label
        The detector, as `tsadbench run --detector` takes it.
    epochs
        Replaces the detector's own number of epochs; None keeps it.
    """

    def __init__(self, label: str, epochs: int | None) -> None:
        data = load_dataset("skab")(DataOptions())
        (self.episode,) = load_protocol("published")().episodes(data.dataset)
        contender = contender_from_label(label, data.dataset)
        self.detector = contender.construction.construct()
        if epochs is not None:
            known = self.detector.get_params()  # older versions have no min_steps
            self.detector.set_params(epochs=epochs, **({"min_steps": 1} if "min_steps" in known else {}))

    def parts(self) -> dict[str, Callable[[], object]]:
        """Return the three parts of the trial by name, to be called in this order."""
        return {
            "fit": lambda: self.detector.fit(self.episode.train),
            "training_scores": lambda: self.detector.training_scores(self.episode.train),
            "score": lambda: [self.detector.score(recording) for recording in self.episode.test],
        }

    def run(self) -> None:
        """Run all parts."""
        for part in self.parts().values():
            part()

    def epochs(self) -> int | None:
        """Return how many epochs the fit took; None for a detector that trains no network."""
        losses = getattr(self.detector, "losses_", None)
        return None if losses is None else len(losses)


def cost(trial: Trial) -> dict[str, object]:
    """Return CPU seconds of each part and of the reference loop (the mean of two before and two after)."""
    reference_loop()
    loops = [reference_loop(), reference_loop()]
    rate = product_rate()
    seconds = {}
    for name, part in trial.parts().items():
        start = time.process_time()
        part()
        seconds[name] = time.process_time() - start
    loops += [reference_loop(), reference_loop()]
    return {
        "seconds": seconds,
        "unit": sum(loops) / 4,
        "product_rate": max(rate, product_rate()),
        "epochs": trial.epochs(),
    }


def products(trial: Trial) -> dict[str, object]:
    """Return the floating-point operations in products and convolutions, forwards and backwards."""
    with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as counter:
        trial.run()
    return {"operations": counter.get_total_flops(), "epochs": trial.epochs()}


def kind_of(operation: str) -> str:
    """Return the kind of an operation of PyTorch's profiler."""
    name = operation.rpartition("::")[2].lower()
    stem = name.removesuffix("_backward").removesuffix("_")
    kinds = {beginning: kind for kind, beginnings in KINDS.items() for beginning in beginnings.split()}
    exact = kinds.get(name) or kinds.get(stem)
    if exact is not None:
        return exact
    return next(
        (kind for beginning, kind in kinds.items() if name.startswith((f"{beginning}_", f"{beginning}."))), "other"
    )


def profiled(trial: Trial) -> dict[str, object]:
    """Return the share of the CPU time by kind of operation, and the five dearest operations outside these kinds."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        trial.run()
    events = profiler.key_averages()
    total = sum(event.self_cpu_time_total for event in events)
    shares: dict[str, float] = {}
    others: dict[str, float] = {}
    for event in events:
        kind = kind_of(event.key)
        shares[kind] = shares.get(kind, 0.0) + event.self_cpu_time_total / total
        if kind == "other":
            others[event.key] = event.self_cpu_time_total / total
    dearest = sorted(others, key=others.__getitem__, reverse=True)[:5]
    return {"shares": shares, "others": {name: others[name] for name in dearest}}


def main() -> None:
    """Print the measurement that the command line asks for."""
    label, what, *rest = sys.argv[1:]
    torch.set_num_threads(1)
    trial = Trial(label, int(rest[0]) if rest else None)
    measurement = {"cost": cost, "products": products, "profile": profiled}[what](trial)
    print(json.dumps(measurement))


if __name__ == "__main__":
    main()
