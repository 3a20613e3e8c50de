"""What the live modules did, seen by hooks on them and not taken from any configuration."""

from __future__ import annotations

from typing import Any

from attrs import Factory, define, evolve, fields

from xcfg_torch.compiling import is_compiled
from xcfg_torch.dtypes import dtype_name, torch_dtype
from xcfg_torch.forward_seen import ForwardSeen, forward_seen

_PROJECTIONS = ("Linear", "Conv1D")


@define(kw_only=True)
class Observation:
    """Filled by the hooks during a scoring call; emptied by :meth:`reset`.

    ``activations``: dtypes of the inputs of linear layers. ``logits``: dtypes the model handed on. ``attention``:
    implementations that ran. ``cached``: whether keys and values were handed in or out. ``raw``: whether the operator
    got the model's logits bit for bit. ``operator_columns``: widths of the rows it got. ``deterministic``: states of
    torch's switch while it ran. ``gathered``: columns of queries and of keys in each attention call that got its keys
    from several ranks. ``kernels``: what torch's fused attention dispatched. ``norms``: how RMS norms were computed.
    ``head``: dtypes of the inputs of the output head. ``cache``: dtypes of kept keys. ``summed``: dtypes that layers
    whose outputs are summed over ranks handed on.
    """

    forwards: list[ForwardSeen] = Factory(list)
    activations: set[str] = Factory(set)
    logits: set[str] = Factory(set)
    attention: set[str] = Factory(set)
    kernels: set[str] = Factory(set)
    norms: set[str] = Factory(set)
    head: set[str] = Factory(set)
    cache: set[str] = Factory(set)
    summed: set[str] = Factory(set)
    operator_columns: set[int] = Factory(set)
    deterministic: set[bool] = Factory(set)
    gathered: list[tuple[int, int]] = Factory(list)
    cached: bool = False
    raw: bool | None = None

    def reset(self) -> None:
        """Forget the last scoring call."""
        for field in fields(type(self)):
            kept = getattr(self, field.name)
            if isinstance(kept, list | set):
                kept.clear()
        self.cached = False
        self.raw = None

    @property
    def padding_side(self) -> str:
        """``left``, ``right``, ``mixed``, or ``none`` where no row was padded."""
        seen = {item.padding for item in self.forwards} - {"none"}
        return seen.pop() if len(seen) == 1 else ("mixed" if seen else "none")


def observe(model: Any) -> Observation:
    """Hook a model, after it was wrapped, cast and compiled, and return what its hooks will fill.

    Linear layers inside a compiled module are left alone: a hook there would become a part of the compiled graph.
    """
    seen = Observation()

    def before(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        cache = kwargs.get("past_key_values")
        forward = forward_seen(kwargs["input_ids"], kwargs["attention_mask"], kwargs["position_ids"])
        seen.forwards.append(evolve(forward, past=0 if cache is None else cache.get_seq_length()))
        seen.cached |= cache is not None

    def after(_module: Any, _args: tuple[Any, ...], output: Any) -> None:
        seen.logits.add(dtype_name(output.logits.dtype))
        cache = output.get("past_key_values")
        seen.cached |= cache is not None
        seen.cache |= {dtype_name(layer.keys.dtype) for layer in getattr(cache, "layers", ()) if layer.is_initialized}

    def head(_module: Any, args: tuple[Any, ...]) -> None:
        seen.head.add(dtype_name(args[0].dtype))

    def projection(_module: Any, args: tuple[Any, ...]) -> None:
        seen.activations.add(dtype_name(args[0].dtype))

    inside = {id(module) for outer in model.modules() if is_compiled(outer) for module in outer.modules()}
    for module in model.modules():
        if type(module).__name__ in _PROJECTIONS and id(module) not in inside:
            module.register_forward_pre_hook(projection)
    if model.get_output_embeddings() is not None:
        model.get_output_embeddings().register_forward_pre_hook(head)
    model.register_forward_pre_hook(before, with_kwargs=True)
    model.register_forward_hook(after)
    return seen


def cast_logits(model: Any, dtype: str) -> None:
    """Make a model hand on its logits in ``dtype``. Must come before :func:`observe`, which then sees the result."""
    wanted = torch_dtype(dtype)

    def cast(_module: Any, _args: tuple[Any, ...], output: Any) -> Any:
        output.logits = output.logits.to(wanted)
        return output

    model.register_forward_hook(cast)
