"""A case after execution: what each side gave and how the pair was judged."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from xcfg.model.attempt import Measured, SideFailure
from xcfg.model.case import Case
from xcfg.model.json import tupled
from xcfg.model.provenance import SideProvenance
from xcfg.model.result import Comparison


@frozen(kw_only=True, eq=False)
class PairedTokens:
    """Both sides' values at every active response token of a comparable pair, in (sequence id, position) order.

    ``sequence`` int64 index into ``sequence_ids``; ``position`` int64 from 0 in the response; ``token`` int64;
    ``rollout_logp`` and ``train_logp`` float32 (nats); ``rollout_rank`` and ``train_rank`` int64. All of shape (A,).
    """

    sequence_ids: tuple[str, ...] = field(converter=tupled)
    sequence: np.ndarray
    position: np.ndarray
    token: np.ndarray
    rollout_logp: np.ndarray
    train_logp: np.ndarray
    rollout_rank: np.ndarray
    train_rank: np.ndarray


@frozen(kw_only=True)
class SideOutcome:
    """One side of a judged case. ``provenance`` is None where the side has no result; then ``failure`` says why."""

    side_id: str = ""
    attempt: int = 0
    provenance: SideProvenance | None = None
    failure: SideFailure | None = None
    measured: Measured = field(factory=Measured)


@frozen(kw_only=True)
class CaseOutcome:
    """A case with its comparison. A side that failed gives a comparison of that status and no numbers."""

    case: Case
    comparison: Comparison
    rollout: SideOutcome
    training: SideOutcome
    tokens: PairedTokens | None = field(default=None, eq=False)
