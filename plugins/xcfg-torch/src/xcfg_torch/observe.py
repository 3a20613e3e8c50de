"""What the live modules did, seen by hooks on them and not taken from any configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import Factory, define, frozen

from xcfg_torch.dtypes import dtype_name, torch_dtype

if TYPE_CHECKING:
    import torch

_PROJECTIONS = ("Linear", "Conv1D")


@frozen(kw_only=True)
class ForwardSeen:
    """One forward pass: rows and columns of its input, and where its attention mask had zeros."""

    rows: int
    width: int
    padding: str


@define(kw_only=True)
class Observation:
    """Filled by the hooks during a scoring call; emptied by :meth:`reset`.

    ``activations``: dtypes of the inputs of linear layers. ``logits``: dtypes the model handed on. ``attention``:
    implementations that ran. ``cached``: whether keys and values were handed in or out. ``raw``: whether the operator
    got the model's logits bit for bit.
    """

    forwards: list[ForwardSeen] = Factory(list)
    activations: set[str] = Factory(set)
    logits: set[str] = Factory(set)
    attention: set[str] = Factory(set)
    cached: bool = False
    raw: bool | None = None

    def reset(self) -> None:
        """Forget the last scoring call."""
        self.forwards.clear()
        self.activations.clear()
        self.logits.clear()
        self.attention.clear()
        self.cached = False
        self.raw = None

    @property
    def padding_side(self) -> str:
        """``left``, ``right``, ``mixed``, or ``none`` where no row was padded."""
        seen = {item.padding for item in self.forwards} - {"none"}
        return seen.pop() if len(seen) == 1 else ("mixed" if seen else "none")


def observe(model: Any) -> Observation:
    """Hook a model, after it was wrapped and cast, and return what its hooks will fill."""
    seen = Observation()

    def before(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = kwargs["input_ids"]
        seen.forwards.append(
            ForwardSeen(rows=ids.shape[0], width=ids.shape[1], padding=_padding(kwargs["attention_mask"]))
        )
        seen.cached |= kwargs.get("past_key_values") is not None

    def after(_module: Any, _args: tuple[Any, ...], output: Any) -> None:
        seen.logits.add(dtype_name(output.logits.dtype))
        seen.cached |= output.get("past_key_values") is not None

    def projection(_module: Any, args: tuple[Any, ...]) -> None:
        seen.activations.add(dtype_name(args[0].dtype))

    for module in model.modules():
        if type(module).__name__ in _PROJECTIONS:
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


def _padding(mask: torch.Tensor) -> str:
    left, right = not bool(mask[:, 0].all()), not bool(mask[:, -1].all())
    if left and right:
        return "mixed"
    return "left" if left else ("right" if right else "none")
