"""A fake GPU on the CPU: tensors that claim to be on "cuda:0", and refuse to mix with tensors on the CPU.

Each such tensor holds one on the CPU, on which every operation is computed. PyTorch's own code above its operators
(autograd, modules, optimisers) sees a tensor on another device. The fake refuses what a real GPU refuses, and also to
index rows on the GPU with an index on the CPU, which costs a transfer each time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

FAKE = torch.device("cuda", 0)
_CPU = torch.device("cpu")


class MixedDevicesError(RuntimeError):
    """An operation got tensors of the CPU and of the fake GPU."""


class FakeCuda(Tensor):
    """A tensor of the fake GPU.

    To PyTorch's C++ code it is on the device "meta": on "cuda", autograd would look for the work queue of a real GPU.
    """

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor, requires_grad: bool = False) -> FakeCuda:
        fake: FakeCuda = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device="meta",
            requires_grad=requires_grad,
        )
        fake.inner = inner
        return fake

    @property
    def device(self) -> torch.device:
        return FAKE

    @property
    def is_cuda(self) -> bool:
        return True

    @property
    def is_meta(self) -> bool:
        return False

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied = FakeCuda(self.inner.clone(), self.requires_grad)
        memo[id(self)] = copied
        return copied

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.ops.aten.copy_.default:  # it may copy from one device to the other
            _inner(args[0]).copy_(_inner(args[1]))
            return args[0]
        for tensor in tree_leaves((args, kwargs)):
            if isinstance(tensor, Tensor) and not isinstance(tensor, FakeCuda) and tensor.dim() > 0:
                raise MixedDevicesError(f"{func}: {list(tensor.shape)} on {tensor.device}, not on {FAKE}")
        result = func(*_inner(args), **_inner(kwargs))
        return return_and_correct_aliasing(func, args, kwargs, _faked(result))


def _inner(values: Any) -> Any:
    return tree_map_only(FakeCuda, lambda fake: fake.inner, values)


def _faked(values: Any) -> Any:
    return tree_map_only(Tensor, FakeCuda, values)


class _Created(TorchDispatchMode):
    """Creates tensors on the device that C++ code names, such as zero gradients on the device of another tensor."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is None:
            return func(*args, **kwargs)
        on_fake = torch.device(kwargs["device"]).type == "meta"
        result = func(*_inner(args), **_inner(kwargs) | {"device": _CPU})
        return _faked(result) if on_fake else result


class _Named(TorchFunctionMode):
    """Handles devices that Python code names: PyTorch itself would look for a GPU before any operator runs."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = (resolve_name(func) or getattr(func, "__name__", "")).rpartition(".")[2]
        fake = args[0] if args and isinstance(args[0], FakeCuda) else None
        if name in ("to", "cpu", "cuda"):
            return _moved(func, name, args, kwargs)
        if func is Tensor.backward:
            # Gradients that are implemented in Python name devices as well. Calling `backward` would recurse.
            with self:
                gradient = torch.ones_like(args[0])
                engine = torch.autograd.Variable._execution_engine
                kept, inputs = bool(kwargs.get("retain_graph")), tuple(kwargs.get("inputs") or ())
                return engine.run_backward(args[:1], (gradient,), kept, False, inputs, True, accumulate_grad=True)
        if fake is not None and name in ("numpy", "__array__", "data_ptr"):
            raise TypeError(f"can't convert {FAKE} device type tensor to numpy; use Tensor.cpu() first")
        if fake is not None and name == "tolist":
            return fake.inner.tolist()
        target = kwargs.pop("device", None)
        if fake is not None and name == "new_tensor":
            return _on(torch.device(target or FAKE), fake.inner.new_tensor(*args[1:], **kwargs))
        result = func(*args, **kwargs)
        return result if target is None else _on(torch.device(target), result)


def _moved(func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return a tensor after its method ``to``, ``cpu`` or ``cuda``."""
    tensor, *rest = args
    named = [*rest, *kwargs.values()]
    likes = [value for value in named if isinstance(value, Tensor)]
    devices = [value.device for value in likes]
    devices += [torch.device(value) for value in named if isinstance(value, str | torch.device)]
    devices += {"cpu": [_CPU], "cuda": [FAKE]}.get(name, [])
    dtypes = [value.dtype for value in likes] + [value for value in named if isinstance(value, torch.dtype)]
    moved = _on(devices[0], tensor) if devices else tensor
    if moved is not tensor and tensor.requires_grad and torch.is_grad_enabled():
        raise AssertionError("the fake GPU passes no gradient from one device to the other")
    return func(moved, dtypes[0]) if dtypes else moved


def _on(device: torch.device, tensor: Any) -> Any:
    """Return a copy of a tensor on the device; if it is there already, or is not a tensor, return it unchanged."""
    if not isinstance(tensor, Tensor) or (device.type == "cuda") == isinstance(tensor, FakeCuda):
        return tensor
    if device.type == "cpu":
        return _inner(tensor).clone()
    return FakeCuda(tensor.detach().clone(), requires_grad=tensor.requires_grad)


@contextlib.contextmanager
def fake_cuda() -> Iterator[None]:
    """Pretend that this machine has one GPU, whose random numbers are the CPU's."""
    with pytest.MonkeyPatch.context() as patch, _Created(), _Named():
        patch.setattr(torch.cuda, "device_count", lambda: 1)
        patch.setattr(torch.cuda, "get_rng_state", lambda device: torch.zeros(1, dtype=torch.uint8))
        patch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
        patch.setattr(torch.cuda, "manual_seed", lambda seed: None)
        patch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
        # Subclasses of Tensor cannot be detached in inference mode.
        patch.setattr(torch, "inference_mode", torch.no_grad)
        # Otherwise `Module.double` would change the dtype of a parameter, but not of its inner tensor.
        before = torch.__future__.get_overwrite_module_params_on_conversion()
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        try:
            yield
        finally:
            torch.__future__.set_overwrite_module_params_on_conversion(before)
