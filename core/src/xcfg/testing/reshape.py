"""Taking rows out of samples."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from xcfg.model.sample import Samples


def keep_rows(samples: Samples, rows: Iterable[int]) -> Samples:
    """The named rows, in the order given."""
    chosen = list(rows)
    tokens = _flat([samples.input_slice(row) for row in chosen])
    response = _flat([samples.response_slice(row) for row in chosen])
    return Samples(
        sequence=samples.sequence[chosen],
        rank=samples.rank[chosen],
        prompt_length=samples.prompt_length[chosen],
        response_length=samples.response_length[chosen],
        input_ids=samples.input_ids[tokens],
        position_ids=samples.position_ids[tokens],
        action_mask=samples.action_mask[response],
        logprobs=samples.logprobs[response],
    )


def _flat(slices: list[slice]) -> np.ndarray:
    return np.array([index for part in slices for index in range(part.start, part.stop)], dtype=np.int64)
