"""Which attention implementation runs, seen at the torch function it calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SCORES_NDIM = 4  # attention scores are (batch, head, query, key); a router's or sampler's softmax is not


@contextmanager
def watch_attention(seen: set[str]) -> Iterator[None]:
    """Add ``sdpa`` to ``seen`` when torch's fused attention is called, ``eager`` when attention scores meet a softmax.

    Transformers picks the implementation at every call from a configuration value; only the call itself proves it.
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from torch.overrides import TorchFunctionMode

    softmaxes = (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax)

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if function is scaled_dot_product_attention:
                seen.add("sdpa")
            elif function in softmaxes and args and args[0].ndim == _SCORES_NDIM:
                seen.add("eager")
            return function(*args, **(kwargs or {}))

    with Watch():
        yield
