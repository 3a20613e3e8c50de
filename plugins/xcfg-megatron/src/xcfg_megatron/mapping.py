"""Which tensors of a Hugging Face checkpoint make up which parameter of GPTModel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from xcfg_megatron.geometry import Geometry
from xcfg_megatron.layouts import Columns, GateUp, Layout, QueryKeyValue, Vocabulary, Whole
from xcfg_torch.sections import ENDS

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
NORM = "model.norm.weight"


@frozen(kw_only=True)
class Parameter:
    """A parameter ``name`` of GPTModel, from ``tensors`` of the checkpoint (name to shape) in the order of ``layout``.

    ``section`` is the layer, counted from 0 over all stages, or ``ends``.
    """

    name: str
    tensors: Mapping[str, tuple[int, ...]]
    layout: Layout
    section: str


@frozen(kw_only=True)
class Stage:
    """What one pipeline stage holds: ``layers`` by their number over all stages, and either end."""

    layers: tuple[int, ...]
    first: bool = True
    last: bool = True


def whole(shape: Geometry) -> Stage:
    """The stage of a model in one piece."""
    return Stage(layers=tuple(range(shape.layers)))


def parameters(
    shape: Geometry, stage: Stage, *, padded: int, fused: bool = False, shared: bool = True
) -> list[Parameter]:
    """The parameters of a stage. ``padded``: rows of embedding and head.

    ``fused``: the norms before attention and MLP belong to the linear layer after them, as in Transformer Engine's
    layers. ``shared``: a tied head is the embedding itself, where both are in this stage.
    """
    found: list[Parameter] = []
    if stage.first:
        found.append(_vocabulary(shape, "embedding.word_embeddings.weight", EMBEDDING, padded))
    for index, layer in enumerate(stage.layers):
        found += _layer(shape, f"decoder.layers.{index}.", layer, fused)
    if stage.last:
        found.append(_norm("decoder.final_layernorm.weight", NORM, shape.hidden, ENDS))
        if not (shape.tied and shared and stage.first):
            found.append(_vocabulary(shape, "output_layer.weight", EMBEDDING if shape.tied else HEAD, padded))
    return found


def tensors(found: Iterable[Parameter]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors that parameters are made of."""
    return {name: shape for parameter in found for name, shape in parameter.tensors.items()}


def _layer(shape: Geometry, ours: str, layer: int, fused: bool) -> list[Parameter]:
    theirs, section = f"model.layers.{layer}.", str(layer)
    queries, keys = shape.heads * shape.head_dim, shape.groups * shape.head_dim
    rows = {"q": queries, "k": keys, "v": keys}
    layout = QueryKeyValue(shape.heads, shape.groups, shape.head_dim)
    attention, mlp = f"{ours}self_attention.", f"{ours}mlp."
    before = f"{attention}linear_qkv.layer_norm_weight" if fused else f"{ours}input_layernorm.weight"
    between = f"{mlp}linear_fc1.layer_norm_weight" if fused else f"{ours}pre_mlp_layernorm.weight"

    def made(name: str, parts: Mapping[str, tuple[int, ...]], how: Layout) -> Parameter:
        return Parameter(
            name=name, tensors={theirs + part: size for part, size in parts.items()}, layout=how, section=section
        )

    found = [
        _norm(before, f"{theirs}input_layernorm.weight", shape.hidden, section),
        made(
            f"{attention}linear_qkv.weight",
            {f"self_attn.{part}_proj.weight": (size, shape.hidden) for part, size in rows.items()},
            layout,
        ),
        made(f"{attention}linear_proj.weight", {"self_attn.o_proj.weight": (shape.hidden, queries)}, Columns()),
        _norm(between, f"{theirs}post_attention_layernorm.weight", shape.hidden, section),
        made(
            f"{mlp}linear_fc1.weight",
            {f"mlp.{part}_proj.weight": (shape.ffn, shape.hidden) for part in ("gate", "up")},
            GateUp(),
        ),
        made(f"{mlp}linear_fc2.weight", {"mlp.down_proj.weight": (shape.hidden, shape.ffn)}, Columns()),
    ]
    if shape.qkv_bias:
        biases = {f"self_attn.{part}_proj.bias": (size,) for part, size in rows.items()}
        found.append(made(f"{attention}linear_qkv.bias", biases, layout))
    if shape.qk_norm:
        for part in ("q", "k"):
            name = f"{attention}{part}_layernorm.weight"
            found.append(_norm(name, f"{theirs}self_attn.{part}_norm.weight", shape.head_dim, section))
    return found


def _norm(name: str, tensor: str, size: int, section: str) -> Parameter:
    return Parameter(name=name, tensors={tensor: (size,)}, layout=Whole(), section=section)


def _vocabulary(shape: Geometry, name: str, tensor: str, padded: int) -> Parameter:
    layout = Vocabulary(shape.vocabulary, padded)
    return Parameter(name=name, tensors={tensor: (shape.vocabulary, shape.hidden)}, layout=layout, section=ENDS)
