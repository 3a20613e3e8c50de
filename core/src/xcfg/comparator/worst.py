"""The worst tokens of a comparison, with the tokens around them."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from xcfg.comparator.blocks import NamedPairs, PairedRow
from xcfg.comparator.exchange import Exchange, gather_texts
from xcfg.comparator.utf8 import encoded
from xcfg.model.json import tupled
from xcfg.model.result import WorstToken

AROUND = 3
"""Active tokens shown on each side of a worst one."""


@frozen(kw_only=True)
class InContext:
    """A token and its neighbours in the row, itself among them, in order of position."""

    token: WorstToken
    around: tuple[WorstToken, ...] = field(converter=tupled)


def worst_token(row: PairedRow, position: int) -> WorstToken:
    """The token of a row at a position of the response."""
    return _token(row, int(np.searchsorted(row.position, position)))


def worst_tokens(pairs: NamedPairs, count: int) -> list[InContext]:
    """The ``count`` tokens of largest abs(d), largest first; ties in (sequence, position) order."""
    if not count:
        return []
    kept = np.zeros((3, 0))
    for block in pairs.blocks():
        row = np.repeat(block.rows, block.lengths)
        kept = np.concatenate([kept, np.stack([block.absolute, row, block.position])], axis=1)
        kept = kept[:, np.argsort(-kept[0], kind="stable")[:count]]
    found = []
    for number, position in kept[1:].T.astype(np.int64).tolist():
        held = pairs.row(number)
        at = int(np.searchsorted(held.position, position))
        near = range(max(at - AROUND, 0), min(at + AROUND + 1, len(held.position)))
        found.append(InContext(token=_token(held, at), around=[_token(held, place) for place in near]))
    return found


def worst_of_all(mine: WorstToken | None, exchange: Exchange) -> WorstToken:
    """The worst token among all participants' worst, of which one has any; ties by (sequence id, position)."""
    numbers = np.stack(exchange.gather(np.full(7, -1.0) if mine is None else _numbers(mine)))
    names = gather_texts("" if mine is None else mine.sequence, exchange)
    largest = np.flatnonzero(numbers[:, 0] == numbers[:, 0].max()).tolist()
    at = min(largest, key=lambda place: (encoded(names[place]), numbers[place, 1]))
    _, position, token, rollout, train, rollout_rank, train_rank = numbers[at].tolist()
    return WorstToken(
        sequence=names[at],
        position=int(position),
        token=int(token),
        rollout_logp=rollout,
        train_logp=train,
        rollout_rank=int(rollout_rank),
        train_rank=int(train_rank),
    )


def _numbers(token: WorstToken) -> np.ndarray:
    """abs(d), then the fields of a token in the order that :func:`worst_of_all` reads them."""
    logps = (token.rollout_logp, token.train_logp)
    ranks = (token.rollout_rank, token.train_rank)
    return np.array([abs(logps[1] - logps[0]), token.position, token.token, *logps, *ranks])


def _token(row: PairedRow, at: int) -> WorstToken:
    return WorstToken(
        sequence=row.sequence,
        position=int(row.position[at]),
        token=int(row.token[at]),
        rollout_logp=float(row.rollout[at]),
        train_logp=float(row.train[at]),
        rollout_rank=row.rollout_rank,
        train_rank=row.train_rank,
    )
