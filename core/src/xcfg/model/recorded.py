"""Recorded logprobs: one sequence as one side wrote it down."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled


@frozen(eq=False)
class Row:
    """One row of a recorded file. ``place`` names it in messages: ``rollout.jsonl line 3``.

    The values are whatever the file holds: JSON values or numpy arrays; a file of arrays is one row with all of them.
    """

    place: str
    fields: Mapping[str, object]


@frozen(kw_only=True, eq=False)
class Record:
    """One sequence as one side recorded it.

    ``response_ids`` (n,) int64; ``logprobs`` (n,) float32 or float64, natural log, NaN where the file has null;
    ``mask`` (n,) bool or None (every response token is active); ``prompt_ids`` (m,) int64 or None; ``position_ids``
    int64, (n,) of the response or (m + n,) of prompt and response, or None; ``weight_versions`` empty, one for the
    sequence or one a response token. ``semantics`` holds what the file states of ``temperature``, ``top_p``,
    ``top_k``, ``min_p`` and ``logprobs_mode``; ``top_logprobs`` one mapping of token id to logprob a response token.
    ``dtype`` is the stated compute dtype, empty where the file does not say. ``assumed`` names fields the importer
    filled by a convention of its framework and not from the file. Lengths are checked by the comparator, not here.
    """

    id: str
    response_ids: np.ndarray
    logprobs: np.ndarray
    mask: np.ndarray | None = None
    prompt_ids: np.ndarray | None = None
    position_ids: np.ndarray | None = None
    rank: int | None = None
    weight_versions: tuple[str, ...] = field(default=(), converter=tupled)
    semantics: Mapping[str, Json] = field(factory=dict, converter=freeze)
    top_logprobs: tuple[Mapping[int, float], ...] | None = None
    dtype: str = ""
    place: str = ""
    assumed: tuple[str, ...] = field(default=(), converter=tupled)
