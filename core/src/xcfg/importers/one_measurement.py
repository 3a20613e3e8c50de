"""One measurement under two names: a file that shows no drift because one side was never measured."""

from __future__ import annotations

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.model.recorded import Row

TELLING_TOKENS = 16
"""Equal logprobs other than exactly 0.0 from which a row counts as a copy. Two measurements of a short or certain
response may agree in every bit by chance; of this many tokens they do not unless both sides compute alike."""


def refuse_copy(rollout: np.ndarray, training: np.ndarray, row: Row, hint: str) -> None:
    """Refuse a row whose training logprobs are the rollout's, bit for bit.

    For frameworks with a mode that puts the rollout's logprobs in place of the training side's: the difference of such
    fields is 0 whatever the engines did. ``rollout`` and ``training`` hold the active tokens' logprobs of one row (any
    shape, float32 or float64); ``hint`` says which setting of the framework does this and how to record both sides.

    Raises:
        ArtifactError: both have the same shape and the same bits, with ``TELLING_TOKENS`` or more values that are
            not 0.0.
    """
    if rollout.shape != training.shape or rollout.dtype != training.dtype:
        return
    if np.count_nonzero(rollout) < TELLING_TOKENS or rollout.tobytes() != training.tobytes():
        return
    raise ArtifactError(
        f"the training logprobs are the rollout's, bit for bit ({rollout.size} tokens): one measurement stored twice, "
        "which shows no drift whatever the engines did",
        where=row.place,
        hint=hint,
    )
