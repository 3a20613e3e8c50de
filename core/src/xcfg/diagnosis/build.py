"""What the detectors look at, from a judged pair: in memory or recorded, at most two million tokens of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from xcfg.comparator.pairing import side_rows
from xcfg.comparator.recorded.pairs import StoredPairs
from xcfg.comparator.tolerance import lowest
from xcfg.diagnosis.observed import Observed, Rows, Side, Stated
from xcfg.model.attempt import SideResult
from xcfg.model.json import Json
from xcfg.model.outcome import PairedTokens

MOST_TOKENS = 2_000_000


@frozen(kw_only=True)
class Built:
    """The tokens to look at and how many of the judged ones they are; whole rows, evenly spaced among all rows."""

    observed: Observed
    tokens: int
    of_tokens: int
    rows: int
    of_rows: int

    def evidence(self) -> dict[str, Json]:
        """The counts as plain JSON."""
        return {"tokens": self.tokens, "of_tokens": self.of_tokens, "rows": self.rows, "of_rows": self.of_rows}


def chosen_rows(lengths: np.ndarray, most: int = MOST_TOKENS) -> np.ndarray:
    """Ascending numbers of the rows to look at: all, or every k-th with the least k that fits; at least one row."""
    total = int(lengths.sum())
    if total <= most or not len(lengths):
        return np.arange(len(lengths))
    for step in range(math.ceil(total / most), len(lengths) + 1):
        rows = np.arange(0, len(lengths), step)
        if int(lengths[rows].sum()) <= most or len(rows) == 1:
            return rows
    return np.arange(1)


def of_pair(tokens: PairedTokens, rollout: SideResult, training: SideResult, most: int = MOST_TOKENS) -> Built:
    """From the judged tokens of two side results (:func:`xcfg.comparator.compare.compare`)."""
    ids = tokens.sequence_ids
    sides = [side_rows(side.samples, side.sequence_ids, ids) for side in (rollout, training)]
    width = 1 + max(int(side.rank.max(initial=0)) for side in sides)
    left = np.searchsorted(
        sides[0].sequence * width + sides[0].rank, tokens.row_sequence * width + tokens.row_rollout_rank
    )
    built = of_tokens(tokens, most, stated=(_stated(rollout), _stated(training)))
    rows = left[chosen_rows(tokens.row_length, most)]
    lengths = {"prompt_length": sides[0].prompt_length[rows], "response_length": sides[0].response_length[rows]}
    return evolve(built, observed=evolve(built.observed, rows=evolve(built.observed.rows, **lengths)))


def of_tokens(tokens: PairedTokens, most: int = MOST_TOKENS, stated: Sequence[Stated] = (Stated(), Stated())) -> Built:
    """From paired tokens alone; ``stated`` is what rollout and training say of themselves."""
    rows = chosen_rows(tokens.row_length, most)
    keep: np.ndarray | slice = slice(None)
    if len(rows) < len(tokens.row_length):
        marks = np.zeros(len(tokens.row_length), dtype=bool)
        marks[rows] = True
        keep = np.repeat(marks, tokens.row_length)
    columns = (tokens.position, tokens.token, tokens.rollout_logp, tokens.train_logp)
    ranks = (tokens.row_rollout_rank[rows], tokens.row_train_rank[rows])
    return _built(tokens.row_length, rows, ranks, [column[keep] for column in columns], stated)


def of_stored(pairs: StoredPairs, most: int = MOST_TOKENS, stated: Sequence[Stated] = (Stated(), Stated())) -> Built:
    """From the judged rows of a recorded comparison, read back from its scratch folder."""
    lengths = pairs.rows["length"][pairs.chosen]
    rows = chosen_rows(lengths, most)
    numbers = pairs.chosen[rows]
    columns = [pairs.column(name, numbers) for name in ("position", "token", "rollout", "train")]
    ranks = (pairs.rows["rollout_rank"][numbers], pairs.rows["train_rank"][numbers])
    return _built(lengths, rows, ranks, columns, stated)


def _built(
    lengths: np.ndarray,
    rows: np.ndarray,
    ranks: tuple[np.ndarray, np.ndarray],
    columns: Sequence[np.ndarray],
    stated: Sequence[Stated],
) -> Built:
    position, token, rollout, training = columns
    known = [column if len(column) and column.min() >= 0 else None for column in ranks]
    observed = Observed(
        rows=Rows(length=lengths[rows], rollout_rank=known[0], train_rank=known[1]),
        position=position.astype(np.int64),
        token=token.astype(np.int64),
        rollout=Side(logprob=rollout.astype(np.float64), stated=stated[0]),
        training=Side(logprob=training.astype(np.float64), stated=stated[1]),
    )
    return Built(
        observed=observed, tokens=len(position), of_tokens=int(lengths.sum()), rows=len(rows), of_rows=len(lengths)
    )


def _stated(side: SideResult) -> Stated:
    said = side.identity.semantics
    return Stated(
        dtype=lowest([info.compute_dtype for info in side.ranks]),
        mode=f"{said.mode}_logprobs" if said.mode in ("raw", "processed") else said.mode,
        temperature=said.temperature,
        top_p=said.top_p,
        top_k=said.top_k,
        min_p=said.min_p,
    )
