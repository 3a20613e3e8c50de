"""Which attention implementation runs, seen at the torch function it calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_SCORES_NDIM = 4  # attention scores are (batch, head, query, key); a router's or sampler's softmax is not


@contextmanager
def watch_attention(seen: set[str]) -> Iterator[None]:
    """Add ``sdpa`` to ``seen`` when torch's fused attention is called, ``eager`` when attention scores meet a softmax.

    Transformers picks the implementation at every call from a configuration value; only the call itself proves it.
    A compiled layer replays what it was seen to call while it was traced.
    """
    with _watch()() as watch:
        yield
    seen.update(name for name, ran in (("sdpa", watch.sdpa), ("eager", watch.eager)) if ran)


@cache
def _watch() -> Any:
    """The mode, one class for good: a compiled layer is compiled anew under a mode of another class."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from torch.overrides import TorchFunctionMode

    softmaxes = (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax)

    class Watch(TorchFunctionMode):
        sdpa = eager = False  # only ever written while a layer runs, so that no compiled layer depends on them

        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if function is scaled_dot_product_attention:
                self.sdpa = True
            elif function in softmaxes and args and args[0].ndim == _SCORES_NDIM:
                self.eager = True
            return function(*args, **(kwargs or {}))

    return Watch
