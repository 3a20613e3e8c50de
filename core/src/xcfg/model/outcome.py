"""A case after execution: what each side gave and how the pair was judged."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

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

    A row is a sequence as one pair of ranks scored it: ``row_sequence`` (R,) int64 index into ``sequence_ids``,
    ``row_length`` its active tokens (at least 1), ``row_rollout_rank`` and ``row_train_rank``. A token, (A,) each:
    ``position`` int64 from 0 in the response, ``token`` int64, ``rollout_logp`` and ``train_logp`` float32 or
    float64 (nats).
    """

    sequence_ids: tuple[str, ...] = field(converter=tupled)
    row_sequence: np.ndarray
    row_length: np.ndarray
    row_rollout_rank: np.ndarray
    row_train_rank: np.ndarray
    position: np.ndarray
    token: np.ndarray
    rollout_logp: np.ndarray
    train_logp: np.ndarray

    @classmethod
    def of_tokens(
        cls,
        *,
        sequence_ids: Iterable[str],
        sequence: np.ndarray,
        rollout_rank: np.ndarray,
        train_rank: np.ndarray,
        **flat: np.ndarray,
    ) -> PairedTokens:
        """The same from arrays of one value a token: ``sequence``, ``rollout_rank`` and ``train_rank`` are (A,)."""
        per_token = np.stack([sequence, rollout_rank, train_rank])
        edges = np.flatnonzero((per_token[:, 1:] != per_token[:, :-1]).any(axis=0)) + 1
        starts = np.concatenate([np.zeros(min(len(sequence), 1), dtype=np.int64), edges])
        rows = per_token[:, starts]
        return cls(
            sequence_ids=sequence_ids,
            row_sequence=rows[0],
            row_length=np.diff(np.append(starts, len(sequence))),
            row_rollout_rank=rows[1],
            row_train_rank=rows[2],
            **flat,
        )

    @cached_property
    def sequence(self) -> np.ndarray:
        """(A,) index into ``sequence_ids``."""
        return np.repeat(self.row_sequence, self.row_length)

    @cached_property
    def rollout_rank(self) -> np.ndarray:
        """(A,) the rollout rank."""
        return np.repeat(self.row_rollout_rank, self.row_length)

    @cached_property
    def train_rank(self) -> np.ndarray:
        """(A,) the training rank."""
        return np.repeat(self.row_train_rank, self.row_length)


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
