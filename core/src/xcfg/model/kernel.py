"""Requests to a kernel backend and what was bound."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze

SELECTED_LOGPROB = "selected_logprob"
"""The operator from logits and targets to selected-token logprobs."""

LOGP_BACKEND = "logp.backend"
"""The knob whose value is a backend id of :data:`SELECTED_LOGPROB`, for both sides."""

OPERATOR_OF_KNOB = {LOGP_BACKEND: SELECTED_LOGPROB}
"""Knobs whose value is the backend of an operator: applied by binding it, read back from what was bound."""


@frozen(kw_only=True)
class OperatorChoice:
    """A backend named for an operator on one side, with its options."""

    backend: str
    options: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class KernelRequest:
    """What a side run asks of a backend: operator, device type, compute dtype, vocabulary size and options."""

    operator: str
    device: str
    dtype: str
    vocab_size: int
    options: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class BoundKernel:
    """What really ran: the concrete implementation, its build, and whether a fallback was taken."""

    backend: str
    concrete: str
    build: str = ""
    fallback: bool = False
