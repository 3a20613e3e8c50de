"""Megatron's layer specifications, and what stands in for two of its modules that call CUDA unasked."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg_megatron.geometry import Geometry
from xcfg_megatron.importing import megatron, transformer_engine_fault

if TYPE_CHECKING:
    import torch

LOCAL = "local"
TRANSFORMER_ENGINE = "transformer_engine"


def chosen_spec(asked: str | None, device: str) -> str:
    """The specification in force: unasked, Transformer Engine's on CUDA where it is there, else the local one.

    Raises UnsupportedError where Transformer Engine's cannot run.
    """
    fault = layer_spec_fault(asked or LOCAL, device)
    if fault:
        raise UnsupportedError(fault, where="megatron.layer_spec")
    if asked is None:
        return LOCAL if layer_spec_fault(TRANSFORMER_ENGINE, device) else TRANSFORMER_ENGINE
    return asked


def layer_spec_fault(asked: str, device: str) -> str:
    """Why the specification cannot run on this device; empty where it can."""
    if asked != TRANSFORMER_ENGINE:
        return ""
    if device != "cuda":
        return "Transformer Engine's layers run on CUDA devices only"
    return transformer_engine_fault()


def layer_spec(shape: Geometry, kind: str) -> Any:
    """The layer specification; the local one with :func:`sdpa_attention` as its attention."""
    specs = megatron("models.gpt.gpt_layer_specs")
    if kind == TRANSFORMER_ENGINE:
        return specs.get_gpt_layer_with_transformer_engine_spec(qk_layernorm=shape.qk_norm)
    spec = specs.get_gpt_layer_local_spec(qk_layernorm=shape.qk_norm, normalization="RMSNorm")
    spec.submodules.self_attention.submodules.core_attention = sdpa_attention()
    return spec


@cache
def sdpa_attention() -> type:
    """The class of attention over torch's fused function: Megatron's own asks for memory of a CUDA device."""
    import torch
    from torch.nn import functional

    class SdpaAttention(torch.nn.Module):
        """Causal attention; with a mask (B, 1, T, T), True where a query may see a key, by that mask alone."""

        stands_in_for = "megatron.core.transformer.dot_product_attention.DotProductAttention"

        def __init__(self, *, softmax_scale: float | None = None, **_: Any) -> None:
            super().__init__()
            self.softmax_scale = softmax_scale

        def forward(
            self,
            query: torch.Tensor,
            key: torch.Tensor,
            value: torch.Tensor,
            attention_mask: torch.Tensor | None,
            /,
            *,
            attn_mask_type: Any = None,
            attention_bias: torch.Tensor | None = None,
            packed_seq_params: Any = None,
        ) -> torch.Tensor:
            """``query`` (T, B, heads, D), ``key`` and ``value`` (T, B, groups, D): (T, B, heads * D)."""
            if attention_bias is not None or packed_seq_params is not None:
                raise UnsupportedError("neither an attention bias nor packed sequences are computed here")
            queries, keys, values = (part.permute(1, 2, 0, 3) for part in (query, key, value))
            mixed = functional.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=attention_mask,
                is_causal=attention_mask is None,
                scale=self.softmax_scale,
                enable_gqa=query.shape[2] != key.shape[2],
            )
            return mixed.permute(2, 0, 1, 3).flatten(2)

    return SdpaAttention


@cache
def placed_rotary() -> type:
    """The class of a rotary embedding that stays on its device and may be told the position of every token.

    Megatron's own moves its frequencies to a CUDA device and counts the columns of a row.
    """
    import torch

    stock = megatron("models.common.embeddings.rotary_pos_embedding").RotaryEmbedding

    class PlacedRotaryEmbedding(stock):  # type: ignore[misc, valid-type]
        """Angles of column numbers, as Megatron has them; of ``positions`` (B, T) instead where these are set."""

        stands_in_for = f"{stock.__module__}.{stock.__qualname__}"
        positions: torch.Tensor | None = None

        def get_emb(self, max_seq_len: int, offset: int = 0) -> torch.Tensor:
            """(T, 1, 1, D) of column numbers, or (T, B, 1, D) of positions, both float32."""
            if self.positions is None:
                angles = self.get_freqs_non_repeated(max_seq_len, offset)[:, None, None, :]
            else:
                angles = torch.einsum("bt,d->tbd", self.positions.to(self.inv_freq.dtype), self.inv_freq)[:, :, None, :]
            return torch.cat((angles, angles), dim=-1)

        def forward(self, max_seq_len: int, offset: int = 0, packed_seq: bool = False, cp_group: Any = None) -> Any:
            """As Megatron's, without its cache, which would keep the angles of an earlier batch."""
            return self.get_emb(max_seq_len, offset)

    return PlacedRotaryEmbedding
