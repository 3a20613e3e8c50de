"""Only the ends, only the starts, or nothing beyond a cap."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.language import log_softmax_at
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.magnitude import NARROW, disturbance
from xcfg.testing.scenarios.scenario import scenario


def edges(draft: Draft, *, last: bool, count: int = 1) -> np.ndarray:
    """(N,) bool: the last, or first, ``count`` tokens of each row."""
    length = draft.rows.length[draft.row]
    within = np.arange(len(draft.row)) - np.searchsorted(draft.row, draft.row)
    chosen: np.ndarray = within >= length - count if last else within < count
    return chosen


@scenario("boundary-end-roll", "boundary-end", cause=("T2",))
def end_roll(draft: Draft) -> None:
    """The last token of every packed row is wrong by nats: labels were rolled over the rows' edges."""
    places = np.flatnonzero(edges(draft, last=True))

    def rolled(logprob: np.ndarray) -> np.ndarray:
        token = draft.token[(places + 1) % len(draft.token)]
        result = logprob.copy()
        result[places] = log_softmax_at(draft.training.raw[places], token)[0]
        return result

    draft.training.after.append(rolled)


@scenario("boundary-end-few", "boundary-end")
def end_few(draft: Draft) -> None:
    """The last two or three tokens drift: a convolution or a lookahead that reads over the edge of the row."""
    count = int(draft.pick(2, 3))
    draft.disturb(draft.either(), edges(draft, last=True, count=count), 2 * disturbance(draft, NARROW))


@scenario("boundary-end-stop", "boundary-end")
def end_stop(draft: Draft) -> None:
    """The stop token's logprob is that of another stop token: a list of two, of which each side scores its own."""
    places = np.flatnonzero(edges(draft, last=True))
    half = draft.either()

    def other(logprob: np.ndarray) -> np.ndarray:
        result = logprob.copy()
        token = (draft.token[places] + 1) % draft.shape.vocabulary
        result[places] = log_softmax_at(half.raw[places], token)[0]
        return result

    half.after.append(other)


@scenario("boundary-start-leak", "boundary-start")
def start_leak(draft: Draft) -> None:
    """The first token of every row is wrong by nats: it was scored from the last state of the row before."""
    places = np.flatnonzero(edges(draft, last=False))
    half = draft.either()

    def leaked(logprob: np.ndarray) -> np.ndarray:
        result = logprob.copy()
        result[places] = log_softmax_at(half.raw[places - 1], draft.token[places])[0]
        return result

    half.after.append(leaked)


@scenario("boundary-start-few", "boundary-start")
def start_few(draft: Draft) -> None:
    """The first tokens drift: the prompt's last token is counted twice, or a template's end is tokenised apart."""
    count = int(draft.pick(2, 3))
    draft.disturb(draft.either(), edges(draft, last=False, count=count), 2 * disturbance(draft, NARROW))


def _cap(draft: Draft, fill: float | None) -> None:
    cap = int(np.quantile(draft.position, draft.generator.uniform(0.5, 0.85)))
    beyond = draft.position >= cap
    held = np.maximum.accumulate(np.where(beyond, 0, np.arange(len(beyond))))
    draft.facts.update(cap=cap, beyond=beyond)
    half = draft.either()
    half.after.append(lambda logprob: logprob[held] if fill is None else np.where(beyond, fill, logprob))


@scenario("truncated-zero", "truncated", cause=("T6",))
def truncated_zero(draft: Draft) -> None:
    """Everything beyond a fixed length is exactly 0.0 on one side: a cap per turn, applied to a merged row."""
    _cap(draft, 0.0)


@scenario("truncated-constant", "truncated", cause=("T6",))
def truncated_constant(draft: Draft) -> None:
    """The same with another padding value, such as -1 or -100."""
    _cap(draft, draft.pick(-1.0, -100.0, -1e4))


@scenario("truncated-held", "truncated", cause=("T6",))
def truncated_held(draft: Draft) -> None:
    """The same, where the last value before the cap is repeated."""
    _cap(draft, None)


@scenario("truncated-turns", "truncated", cause=("T6",), wants=Wants(turns=True))
def truncated_turns(draft: Draft) -> None:
    """The same in conversations, whose positions have gaps."""
    _cap(draft, draft.pick(0.0, -1.0))
