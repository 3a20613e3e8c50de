"""The worst tokens of a comparison, with the tokens around them."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from xcfg.comparator.blocks import NamedPairs, PairedRow
from xcfg.comparator.exchange import Exchange
from xcfg.model.json import tupled
from xcfg.model.result import WorstToken

_NUMBERS = 7
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
    """The worst token among all participants' worst, of which one has any; the first participant's of equals."""
    every = exchange.gather(np.full(1, -1.0) if mine is None else _numbers(mine))
    worst = every[int(np.argmax([item[0] for item in every]))]
    return WorstToken(
        sequence=bytes(worst[_NUMBERS:].astype(np.uint8)).decode("utf-8", "surrogatepass"),
        position=int(worst[1]),
        token=int(worst[2]),
        rollout_logp=float(worst[3]),
        train_logp=float(worst[4]),
        rollout_rank=int(worst[5]),
        train_rank=int(worst[6]),
    )


def _numbers(token: WorstToken) -> np.ndarray:
    """abs(d), the fields of a token in the order that :func:`worst_of_all` reads them, the sequence id's bytes."""
    logps = (token.rollout_logp, token.train_logp)
    numbers = (abs(logps[1] - logps[0]), token.position, token.token, *logps, token.rollout_rank, token.train_rank)
    name = np.frombuffer(token.sequence.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    return np.concatenate([np.array(numbers, dtype=np.float64), name.astype(np.float64)])


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
