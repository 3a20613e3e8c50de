"""The handle that scorers give to read-back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import Factory, define

from xcfg_torch.collate import Collation, Step
from xcfg_torch.observe import Observation

if TYPE_CHECKING:
    import torch


@define(kw_only=True)
class Live:
    """An open model with its hooks, and the collation, steps and operators of the last scoring call.

    ``logits_dtype`` is the dtype the logits were asked for in; ``sequences`` the number of sequences of that
    call's token batch; ``deterministic`` whether its operator was to run under torch's deterministic algorithms.
    """

    model: Any
    device: torch.device
    seen: Observation
    logits_dtype: str
    collation: Collation | None = None
    steps: tuple[Step, ...] = ()
    sequences: int = 0
    deterministic: bool = False
    operators: Mapping[str, Callable[..., Any]] = Factory(dict)
