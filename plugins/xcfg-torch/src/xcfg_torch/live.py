"""The handle that scorers give to read-back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attrs import Factory, define

from xcfg_torch.collate import Collation, Step
from xcfg_torch.head import HeadShare
from xcfg_torch.observe import Observation
from xcfg_torch.route import Route
from xcfg_torch.semantics import vocab_size

if TYPE_CHECKING:
    import torch


class Share(Protocol):
    """The columns of each row that this rank computes, where several ranks compute a row together."""

    @property
    def multiple(self) -> int:
        """A pass has a multiple of so many columns."""

    def columns(self, width: int) -> torch.Tensor:
        """Columns of this rank, (W,) int64 and ascending, of rows of ``width``."""

    def whole(self, logprobs: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """Logprobs (N,) of all ranks' response tokens, in (row, position) order, from this rank's own.

        ``response`` (B, T) bool. Every rank of the row must call it.
        """


@define(kw_only=True)
class Live:
    """An open model with its hooks, and the collation, steps and operators of the last scoring call.

    ``logits_dtype`` is the dtype the logits were asked for in; ``sequences`` the number of sequences of that
    call's token batch; ``deterministic`` whether its operator was to run under torch's deterministic algorithms.
    ``share`` is None where this rank computes whole rows, ``head`` where it has all columns of the output head.
    ``route`` is how its rows passed, ``widths`` the columns of the passes of each step by that route.
    ``sdpa_kernel`` is the one kernel that torch's fused attention was held to.
    """

    model: Any
    device: torch.device
    seen: Observation
    logits_dtype: str
    collation: Collation | None = None
    steps: tuple[Step, ...] = ()
    route: Route = Factory(Route)
    widths: list[tuple[int, ...]] = Factory(list)
    sequences: int = 0
    deterministic: bool = False
    sdpa_kernel: str | None = None
    share: Share | None = None
    head: HeadShare | None = None
    operators: Mapping[str, Callable[..., Any]] = Factory(dict)

    @property
    def columns(self) -> int:
        """Columns that take part in the normaliser of a logprob."""
        return self.head.vocab_size if self.head else vocab_size(self.model)
