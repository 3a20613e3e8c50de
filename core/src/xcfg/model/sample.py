"""Frozen token batches and the logprobs scored on them, as flat ragged arrays.

Rows of :class:`Samples` are (rank, sequence) pairs, so replicas of one sequence on several ranks stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import field, frozen

from xcfg.model.ids import digest
from xcfg.model.json import Json, freeze, tupled


def _ints(values: object) -> np.ndarray:
    """A read-only int64 copy. Raises ValueError where a value is not an integer: a token id is never rounded."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"integers are required, got {array.dtype}")
    array = np.array(array, dtype=np.int64)
    array.flags.writeable = False
    return array


def _int_rows(rows: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _bool_rows(rows: Iterable[Iterable[bool]]) -> tuple[tuple[bool, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _float_rows(rows: Iterable[Iterable[float]] | None) -> tuple[tuple[float, ...], ...] | None:
    return None if rows is None else tuple(tuple(row) for row in rows)


def offsets(lengths: np.ndarray) -> np.ndarray:
    """(R + 1,) int64: where each ragged row of these lengths starts, and the total."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def ragged_index(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Flat int64 index that gathers rows ``[start, start + length)`` one after the other, without a loop."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    index: np.ndarray = np.arange(total, dtype=np.int64)
    index += np.repeat(starts - (ends - lengths), lengths)
    return index


LONG = 64
"""Mean row length from which copying row by row is faster than an index of every element."""


def ragged(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The rows ``[start, start + length)`` of a flat array one after the other; a view where they lie like that."""
    filled = np.flatnonzero(lengths)
    starts, lengths = starts[filled], lengths[filled]
    if not len(filled):
        return values[:0]
    ends = starts + lengths
    if (starts[1:] == ends[:-1]).all():
        return values[int(starts[0]) : int(ends[-1])]
    if int(lengths.sum()) < LONG * len(filled):
        gathered: np.ndarray = values[ragged_index(starts, lengths)]
        return gathered
    return np.concatenate([values[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])


@frozen(kw_only=True, eq=False)
class TokenBatch:
    """The tokens every configuration scores.

    ``ids``: sequence ids, unique, length S. ``prompts`` and ``responses``: token ids, S tuples of ints.
    ``action_masks``: S tuples of bools, one a response token; True is active. ``sampled_logprobs``: S tuples of
    natural-log probabilities that the sampler reported (nats), or None for a recorded batch.
    """

    ids: tuple[str, ...] = field(converter=tupled)
    prompts: tuple[tuple[int, ...], ...] = field(converter=_int_rows)
    responses: tuple[tuple[int, ...], ...] = field(converter=_int_rows)
    action_masks: tuple[tuple[bool, ...], ...] = field(converter=_bool_rows)
    sampled_logprobs: tuple[tuple[float, ...], ...] | None = field(default=None, converter=_float_rows)
    weight_version: str = ""

    def __attrs_post_init__(self) -> None:
        """Raise ValueError on duplicate ids or on rows whose lengths disagree."""
        if len(set(self.ids)) != len(self.ids):
            raise ValueError("sequence ids repeat in the token batch")
        if not len(self.ids) == len(self.prompts) == len(self.responses) == len(self.action_masks):
            raise ValueError("a token batch needs one prompt, response and mask for each id")
        for name, response, mask in zip(self.ids, self.responses, self.action_masks, strict=True):
            if len(response) != len(mask):
                raise ValueError(f"sequence {name}: {len(mask)} mask values for {len(response)} response tokens")
        reported = self.sampled_logprobs
        if reported is not None and list(map(len, reported)) != list(map(len, self.responses)):
            raise ValueError("a token batch needs one sampled logprob for each response token")

    @property
    def active_tokens(self) -> int:
        """Number of active response tokens."""
        return sum(sum(mask) for mask in self.action_masks)

    def digest(self) -> str:
        """SHA-256 over ids, tokens, masks and weight version; sampled logprobs are evidence, not identity."""
        return digest(
            {
                "ids": list(self.ids),
                "prompts": [list(row) for row in self.prompts],
                "responses": [list(row) for row in self.responses],
                "action_masks": [list(row) for row in self.action_masks],
                "weight_version": self.weight_version,
            }
        )


@frozen(kw_only=True, eq=False)
class Samples:
    """What the ranks of one side run scored. R rows, each one sequence on one rank.

    ``sequence`` (R,) index into the token batch's ids; ``rank`` (R,); ``prompt_length`` and ``response_length`` (R,);
    ``input_ids`` and ``position_ids`` flat int64 over prompt plus response of every row, padding removed;
    ``action_mask`` flat bool and ``logprobs`` flat float32 (nats) over the response tokens of every row.
    ``position_ids`` of a recorded batch may be all -1: unknown.
    """

    sequence: np.ndarray = field(converter=_ints)
    rank: np.ndarray = field(converter=_ints)
    prompt_length: np.ndarray = field(converter=_ints)
    response_length: np.ndarray = field(converter=_ints)
    input_ids: np.ndarray = field(converter=_ints)
    position_ids: np.ndarray = field(converter=_ints)
    action_mask: np.ndarray
    logprobs: np.ndarray

    def __attrs_post_init__(self) -> None:
        """Raise ValueError where the flat arrays do not have the lengths the rows declare."""
        if any(array.ndim != 1 for array in self.arrays().values()):
            raise ValueError("the arrays of the samples must be flat")
        if min(self.prompt_length.min(initial=0), self.response_length.min(initial=0)) < 0:
            raise ValueError("a length is negative")
        rows = len(self.sequence)
        if not rows == len(self.rank) == len(self.prompt_length) == len(self.response_length):
            raise ValueError("row arrays of the samples differ in length")
        total = int(self.prompt_length.sum() + self.response_length.sum())
        response = int(self.response_length.sum())
        if len(self.input_ids) != total or len(self.position_ids) != total:
            raise ValueError(f"input_ids and position_ids must hold {total} tokens")
        if len(self.action_mask) != response or len(self.logprobs) != response:
            raise ValueError(f"action_mask and logprobs must hold {response} tokens")
        if self.logprobs.dtype != np.float32 or self.action_mask.dtype != np.bool_:
            raise ValueError("logprobs must be float32 and action_mask bool")

    @property
    def rows(self) -> int:
        """Number of (rank, sequence) rows."""
        return len(self.sequence)

    @cached_property
    def input_offsets(self) -> np.ndarray:
        """(R + 1,) int64: where each row starts in ``input_ids`` and ``position_ids``."""
        return offsets(self.prompt_length + self.response_length)

    @cached_property
    def response_offsets(self) -> np.ndarray:
        """(R + 1,) int64: where each row starts in ``logprobs`` and ``action_mask``."""
        return offsets(self.response_length)

    def input_slice(self, row: int) -> slice:
        """Where the prompt and response of a row lie in ``input_ids`` and ``position_ids``."""
        return slice(int(self.input_offsets[row]), int(self.input_offsets[row + 1]))

    def response_slice(self, row: int) -> slice:
        """Where the response of a row lies in ``logprobs`` and ``action_mask``."""
        return slice(int(self.response_offsets[row]), int(self.response_offsets[row + 1]))

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name, as they are stored in ``samples.safetensors``."""
        return {name: getattr(self, name) for name in ARRAYS}


ARRAYS = (
    "sequence",
    "rank",
    "prompt_length",
    "response_length",
    "input_ids",
    "position_ids",
    "action_mask",
    "logprobs",
)


_EMPTY = {"action_mask": np.zeros(0, dtype=bool), "logprobs": np.zeros(0, dtype=np.float32)}


def concatenate(parts: Sequence[Samples]) -> Samples:
    """The rows of several ranks as one value, ordered by (sequence, rank) whatever the order of ``parts``.

    Rows that repeat one (sequence, rank) keep the order of ``parts``.
    """
    blank = np.zeros(0, dtype=np.int64)
    joined = {
        name: np.concatenate([*(getattr(part, name) for part in parts), _EMPTY.get(name, blank)]) for name in ARRAYS
    }
    order = np.lexsort((joined["rank"], joined["sequence"]))
    totals = joined["prompt_length"] + joined["response_length"]
    tokens = ragged_index(offsets(totals)[order], totals[order])
    response = ragged_index(offsets(joined["response_length"])[order], joined["response_length"][order])
    index = {"input_ids": tokens, "position_ids": tokens, "action_mask": response, "logprobs": response}
    return Samples(**{name: array[index.get(name, order)] for name, array in joined.items()})


@frozen(kw_only=True)
class RankInfo:
    """Metadata of one rank of a side run.

    ``compute_dtype`` is that of the activations in the matmuls, as observed; ``parallel`` maps a parallel mode to its
    degree (``{"tp": 2}``); ``facts`` holds whatever else the scorer observed (padding side, cache mode, kernels).
    """

    rank: int
    world_size: int
    compute_dtype: str
    parallel: Mapping[str, int] = field(factory=dict, converter=freeze)
    padding_side: str = "none"
    cache_mode: str = "none"
    facts: Mapping[str, Json] = field(factory=dict, converter=freeze)
