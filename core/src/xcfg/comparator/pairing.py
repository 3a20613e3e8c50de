"""Rows of both sides lined up by sequence, and the flat tokens of chosen pairs of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from xcfg.model.outcome import PairedTokens
from xcfg.model.sample import Samples, ragged, ragged_index


def ordered_ids(ids: Sequence[str]) -> tuple[str, ...]:
    """Sequence ids as UTF-8 bytes sort them, which is as text does, so that no order of files or ranks matters."""
    return tuple(sorted(ids))


@frozen(kw_only=True, eq=False)
class SideRows:
    """The rows of one side sorted by (sequence, rank); replicas of a sequence are neighbours.

    ``sequence`` indexes the ordered ids. ``input_start`` and ``response_start`` are places in the flat arrays of
    ``samples``, ``active`` counts active tokens. ``first`` (S,) is the first row of each sequence, ``replicas`` (S,)
    their number. The rest is (R,).
    """

    samples: Samples
    sequence: np.ndarray
    rank: np.ndarray
    prompt_length: np.ndarray
    response_length: np.ndarray
    input_start: np.ndarray
    response_start: np.ndarray
    active: np.ndarray
    first: np.ndarray
    replicas: np.ndarray

    def response(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What a flat array of the response holds for ``rows``, one row after the other; a view where it can be."""
        return ragged(values, self.response_start[rows], self.response_length[rows])

    def sequences(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What a flat array of prompt and response holds for ``rows``; a view where it can be."""
        return ragged(values, self.input_start[rows], (self.prompt_length + self.response_length)[rows])

    def response_index(self, rows: np.ndarray) -> np.ndarray:
        """Flat places of the response tokens of ``rows``, one row after the other."""
        return ragged_index(self.response_start[rows], self.response_length[rows])


def side_rows(samples: Samples, sequence_ids: Sequence[str], ids: Sequence[str]) -> SideRows:
    """Rows of a side whose artifact checks passed; ``ids`` are the ordered ids of all its sequences."""
    place: Mapping[str, int] = {name: index for index, name in enumerate(ids)}
    of_side = np.array([place[name] for name in sequence_ids], dtype=np.int64)
    key = of_side[samples.sequence]
    order = np.lexsort((samples.rank, key))
    sequence = key[order]
    replicas = np.bincount(sequence, minlength=len(ids))
    return SideRows(
        samples=samples,
        sequence=sequence,
        rank=samples.rank[order],
        prompt_length=samples.prompt_length[order],
        response_length=samples.response_length[order],
        input_start=samples.input_offsets[:-1][order],
        response_start=samples.response_offsets[:-1][order],
        active=_active(samples)[order],
        first=np.cumsum(replicas) - replicas,
        replicas=replicas,
    )


def _active(samples: Samples) -> np.ndarray:
    """(R,) active tokens of each row."""
    if samples.action_mask.all():
        return samples.response_length
    before = np.concatenate([[0], np.cumsum(samples.action_mask)])
    return np.diff(before[samples.response_offsets])


@frozen(kw_only=True, eq=False)
class RowPairs:
    """Pairs of a rollout row and a training row of one sequence, (P,) each, sorted by (sequence, ranks)."""

    ids: tuple[str, ...]
    rollout: SideRows
    training: SideRows
    left: np.ndarray
    right: np.ndarray

    @property
    def sequence(self) -> np.ndarray:
        """(P,) the sequence of each pair."""
        sequence: np.ndarray = self.rollout.sequence[self.left]
        return sequence

    def active_tokens(self, pairs: np.ndarray) -> int:
        """Number of active tokens of ``pairs``."""
        return int(self.rollout.active[self.left[pairs]].sum())

    def tokens(self, pairs: np.ndarray) -> PairedTokens:
        """The active tokens of ``pairs``, in their order. Call only where both sides' masks were found equal."""
        left, right = self.left[pairs], self.right[pairs]
        lengths = self.rollout.response_length[left]
        prompt_end = self.rollout.input_start[left] + self.rollout.prompt_length[left]
        counts = self.rollout.active[left]
        keep: slice | np.ndarray = slice(None)
        if counts.sum() < lengths.sum():
            keep = self.rollout.response(self.rollout.samples.action_mask, left)

        filled = np.flatnonzero(counts)
        return PairedTokens(
            sequence_ids=self.ids,
            row_sequence=self.rollout.sequence[left[filled]],
            row_length=counts[filled],
            row_rollout_rank=self.rollout.rank[left[filled]],
            row_train_rank=self.training.rank[right[filled]],
            position=ragged_index(np.zeros(len(left), dtype=np.int64), lengths)[keep],
            token=ragged(self.rollout.samples.input_ids, prompt_end, lengths)[keep],
            rollout_logp=self.rollout.response(self.rollout.samples.logprobs, left)[keep],
            train_logp=self.training.response(self.training.samples.logprobs, right)[keep],
        )


def row_pairs(ids: tuple[str, ...], rollout: SideRows, training: SideRows) -> RowPairs:
    """Every combination of a rollout replica and a training replica of the same sequence."""
    counts = rollout.replicas * training.replicas
    sequence = np.repeat(np.arange(len(ids)), counts)
    within = ragged_index(np.zeros(len(ids), dtype=np.int64), counts)
    width = training.replicas[sequence]
    return RowPairs(
        ids=ids,
        rollout=rollout,
        training=training,
        left=rollout.first[sequence] + within // np.maximum(width, 1),
        right=training.first[sequence] + within % np.maximum(width, 1),
    )
