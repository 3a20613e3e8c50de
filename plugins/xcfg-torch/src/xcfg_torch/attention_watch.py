"""Which attention and norms run, seen at the torch functions they call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from xcfg_torch.norms import FUSED, UNFUSED
from xcfg_torch.sdpa_kernels import kernel_of, watch_dispatch

_SCORES_NDIM = 4  # attention scores are (batch, head, query, key); a router's or sampler's softmax is not


@contextmanager
def watch_attention(
    seen: set[str], *, kernels: set[str] | None = None, norms: set[str] | None = None
) -> Iterator[None]:
    """Add ``sdpa`` to ``seen`` when torch's fused attention is called, ``eager`` when attention scores meet a softmax.

    Transformers picks the implementation at every call from a configuration value; only the call itself proves it.
    ``kernels`` gets the kernel that each call of the fused attention dispatched, ``norms`` whether RMS norms were one
    function or spelt out. A compiled layer replays what it was seen to call while it was traced; its kernels are not
    seen.
    """
    with _watch()() as watch:
        yield
    seen.update(name for name, ran in (("sdpa", watch.sdpa), ("eager", watch.eager)) if ran)
    if kernels is not None:
        kernels.update(watch.kernels)
    if norms is not None:
        norms.update(name for name, ran in ((FUSED, watch.fused), (UNFUSED, watch.unfused)) if ran)


@cache
def _watch() -> Any:
    """The mode, one class for good: a compiled layer is compiled anew under a mode of another class."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from torch.overrides import TorchFunctionMode

    softmaxes = (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax)
    roots = (torch.rsqrt, torch.Tensor.rsqrt)

    class Watch(TorchFunctionMode):
        # only ever written while a layer runs, so that no compiled layer depends on them
        sdpa = eager = fused = unfused = False

        def __init__(self) -> None:
            super().__init__()
            self.kernels: set[str] = set()

        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if function is scaled_dot_product_attention:
                self.sdpa = True
                if not torch.compiler.is_compiling():
                    with watch_dispatch()() as dispatched:
                        result = function(*args, **(kwargs or {}))
                    self.kernels.add(kernel_of(dispatched.names))
                    return result
            elif function in softmaxes and args and args[0].ndim == _SCORES_NDIM:
                self.eager = True
            elif function is torch.nn.functional.rms_norm:
                self.fused = True
            elif function in roots:
                self.unfused = True
            return function(*args, **(kwargs or {}))

    return Watch
