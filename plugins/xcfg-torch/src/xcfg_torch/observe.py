"""What the live modules did, seen by hooks on them and not taken from any configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import Factory, define, frozen

from xcfg_torch.collate import PADDED, SEQUENTIAL
from xcfg_torch.compiling import is_compiled
from xcfg_torch.dtypes import dtype_name, torch_dtype

if TYPE_CHECKING:
    import torch

_PROJECTIONS = ("Linear", "Conv1D")


@frozen(kw_only=True)
class ForwardSeen:
    """One forward pass: rows and columns of its input, and where its attention mask had zeros.

    ``positions`` are the ways of counting that the positions of its tokens agree with, ``packed`` whether a row held
    more than one first token.
    """

    rows: int
    width: int
    padding: str
    positions: frozenset[str] = frozenset()
    packed: bool = False


@define(kw_only=True)
class Observation:
    """Filled by the hooks during a scoring call; emptied by :meth:`reset`.

    ``activations``: dtypes of the inputs of linear layers. ``logits``: dtypes the model handed on. ``attention``:
    implementations that ran. ``cached``: whether keys and values were handed in or out. ``raw``: whether the operator
    got the model's logits bit for bit. ``operator_columns``: widths of the rows it got. ``deterministic``: states of
    torch's switch while it ran. ``gathered``: columns of queries and of keys in each attention call that got its keys
    from several ranks.
    """

    forwards: list[ForwardSeen] = Factory(list)
    activations: set[str] = Factory(set)
    logits: set[str] = Factory(set)
    attention: set[str] = Factory(set)
    operator_columns: set[int] = Factory(set)
    deterministic: set[bool] = Factory(set)
    gathered: list[tuple[int, int]] = Factory(list)
    cached: bool = False
    raw: bool | None = None

    def reset(self) -> None:
        """Forget the last scoring call."""
        self.forwards.clear()
        self.activations.clear()
        self.logits.clear()
        self.attention.clear()
        self.operator_columns.clear()
        self.deterministic.clear()
        self.gathered.clear()
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
        seen.forwards.append(_forward(kwargs["input_ids"], kwargs["attention_mask"], kwargs["position_ids"]))
        seen.cached |= kwargs.get("past_key_values") is not None

    def after(_module: Any, _args: tuple[Any, ...], output: Any) -> None:
        seen.logits.add(dtype_name(output.logits.dtype))
        seen.cached |= output.get("past_key_values") is not None

    def projection(_module: Any, args: tuple[Any, ...]) -> None:
        seen.activations.add(dtype_name(args[0].dtype))

    inside = {id(module) for outer in model.modules() if is_compiled(outer) for module in outer.modules()}
    for module in model.modules():
        if type(module).__name__ in _PROJECTIONS and id(module) not in inside:
            module.register_forward_pre_hook(projection)
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


def _forward(ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> ForwardSeen:
    """With cached keys the mask (B, S) also covers what went before ``ids`` and ``positions`` (B, T)."""
    import torch

    columns = slice(mask.shape[1] - ids.shape[1], None)
    real = mask[:, columns].bool()
    ways = {SEQUENTIAL: mask.cumsum(1) - 1, PADDED: torch.arange(mask.shape[1], device=ids.device).expand(mask.shape)}
    agree = (name for name, way in ways.items() if torch.equal(positions[real], way[:, columns][real]))
    return ForwardSeen(
        rows=ids.shape[0],
        width=ids.shape[1],
        padding=_padding(mask),
        positions=frozenset(agree),
        packed=bool((((positions == 0) & real).sum(1) > 1).any()),
    )


def _padding(mask: torch.Tensor) -> str:
    left, right = not bool(mask[:, 0].all()), not bool(mask[:, -1].all())
    if left and right:
        return "mixed"
    return "left" if left else ("right" if right else "none")
