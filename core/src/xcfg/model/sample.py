"""Frozen token batches and the logprobs scored on them, as flat ragged arrays.

Rows of :class:`Samples` are (rank, sequence) pairs, so replicas of one sequence on several ranks stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import field, frozen

from xcfg.model.ids import digest
from xcfg.model.json import Json, freeze


def _ints(values: object) -> np.ndarray:
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


@frozen(kw_only=True, eq=False)
class TokenBatch:
    """The tokens every configuration scores.

    ``ids``: sequence ids, unique, length S. ``prompts`` and ``responses``: token ids, S tuples of ints.
    ``action_masks``: S tuples of bools, one a response token; True is active. ``sampled_logprobs``: S tuples of
    natural-log probabilities that the sampler reported (nats), or None for a recorded batch.
    """

    ids: tuple[str, ...] = field(converter=tuple)
    prompts: tuple[tuple[int, ...], ...] = field(converter=lambda rows: tuple(tuple(row) for row in rows))
    responses: tuple[tuple[int, ...], ...] = field(converter=lambda rows: tuple(tuple(row) for row in rows))
    action_masks: tuple[tuple[bool, ...], ...] = field(converter=lambda rows: tuple(tuple(row) for row in rows))
    sampled_logprobs: tuple[tuple[float, ...], ...] | None = None
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

    def input_slice(self, row: int) -> slice:
        """Where the prompt and response of a row lie in ``input_ids`` and ``position_ids``."""
        offsets = _offsets(self.prompt_length + self.response_length)
        return slice(int(offsets[row]), int(offsets[row + 1]))

    def response_slice(self, row: int) -> slice:
        """Where the response of a row lies in ``logprobs`` and ``action_mask``."""
        offsets = _offsets(self.response_length)
        return slice(int(offsets[row]), int(offsets[row + 1]))

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


def concatenate(parts: Sequence[Samples]) -> Samples:
    """The rows of several ranks as one value, ordered by (sequence, rank) whatever the order of ``parts``."""
    rows = [(int(part.sequence[row]), int(part.rank[row]), part, row) for part in parts for row in range(part.rows)]
    rows.sort(key=lambda item: item[:2])
    joined: dict[str, list[np.ndarray]] = {name: [] for name in ARRAYS}
    for _, _, part, row in rows:
        tokens, response = part.input_slice(row), part.response_slice(row)
        for name in ARRAYS[:4]:
            joined[name].append(getattr(part, name)[row : row + 1])
        joined["input_ids"].append(part.input_ids[tokens])
        joined["position_ids"].append(part.position_ids[tokens])
        joined["action_mask"].append(part.action_mask[response])
        joined["logprobs"].append(part.logprobs[response])
    dtypes = {"action_mask": np.dtype(bool), "logprobs": np.dtype(np.float32)}
    return Samples(
        **{
            name: np.concatenate(chunks) if chunks else np.zeros(0, dtypes.get(name, np.dtype(np.int64)))
            for name, chunks in joined.items()
        }
    )


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
