"""The kernel operator that a knob names."""

from __future__ import annotations

LOGP_BACKEND = "logp.backend"
"""The knob whose value is a backend id of :data:`SELECTED_LOGPROB`, for both sides."""

SELECTED_LOGPROB = "selected_logprob"
"""The operator from logits and targets to selected-token logprobs."""
