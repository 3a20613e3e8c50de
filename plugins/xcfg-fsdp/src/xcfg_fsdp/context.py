"""Context parallelism: the ranks of a group share the columns of their rows.

Every rank gets whole rows. It passes its own columns through the layers, and each attention call gathers the keys and
values of all: an all-gather in place of the ring of Liu et al. (2023, arXiv:2310.01889), as the training of Llama 3
does it (arXiv:2407.21783, section 3.3.2), so that each query meets its keys in one softmax.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcfg_fsdp.context_limits import check_calls, check_model
from xcfg_fsdp.live import FsdpLive
from xcfg_fsdp.share import ContextShare
from xcfg_torch.observe import Observation
from xcfg_torch.semantics import text_config

if TYPE_CHECKING:
    import torch

IMPLEMENTATION = "xcfg_context_parallel"
"""Name under which transformers finds the attention that gathers."""


def share_columns(live: FsdpLive, share: ContextShare) -> None:
    """Make the model pass this rank's columns only, and note which it passed and what each attention call gathered.

    Raises UnsupportedError for a model whose layers mix columns in other ways than full causal attention; so does a
    pass in which a layer did not gather.
    """
    from transformers import AttentionInterface

    model, seen, calls = live.model, live.seen, 0
    check_model(model)
    config, live.share = text_config(model), share

    def before(_body: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        nonlocal calls
        calls = len(seen.gathered)
        width = kwargs["input_ids"].shape[1]
        own = share.columns(width).to(kwargs["input_ids"].device)
        if len(seen.forwards) == 1:
            live.passed.clear()
        live.passed.append((width, tuple(own.tolist())))
        mine = {name: kwargs[name][:, own] for name in ("input_ids", "position_ids")}
        return args, {**kwargs, **mine, "attention_mask": _causal(kwargs["attention_mask"], own)}

    def after(_body: Any, _args: tuple[Any, ...], _output: Any) -> None:
        check_calls(model, len(seen.gathered) - calls)

    AttentionInterface.register(IMPLEMENTATION, _gathering(share, seen, config._attn_implementation))
    config._attn_implementation = IMPLEMENTATION
    model.base_model.register_forward_pre_hook(before, with_kwargs=True)
    model.base_model.register_forward_hook(after)


def _causal(mask: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """(B, 1, W, T) bool, True where a query of this rank's columns may see a key; ``mask`` (B, T) is 0 on padding."""
    import torch

    places = torch.arange(mask.shape[1], device=mask.device)
    return (own[:, None] >= places) & mask.bool()[:, None, None, :]


def _gathering(share: ContextShare, seen: Observation, name: str) -> Callable[..., Any]:
    """An attention function that calls the one of ``name`` with the keys and values of all ranks."""

    def attend(module: Any, query: Any, key: Any, value: Any, mask: Any, **kwargs: Any) -> Any:
        keys, values = share.gather(key, dim=2), share.gather(value, dim=2)
        seen.gathered.append((query.shape[2], keys.shape[2]))
        return _attention(name, module)(module, query, keys, values, _fitting(mask, name, query.dtype), **kwargs)

    return attend


def _attention(name: str, module: Any) -> Callable[..., Any]:
    """Transformers' function of that name; ``eager`` is the one in the file of the model's own attention."""
    from transformers import AttentionInterface

    own: Callable[..., Any] = sys.modules[type(module).__module__].eager_attention_forward  # type: ignore[attr-defined]
    found: Callable[..., Any] = AttentionInterface().get_interface(name, own)
    return found


def _fitting(mask: torch.Tensor, name: str, dtype: torch.dtype) -> torch.Tensor:
    """The mask as the function takes it: eager attention adds it to its scores."""
    import torch

    if name != "eager":
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)
