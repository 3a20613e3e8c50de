"""The frozen token batch, against which both sides are held: two that scored the same wrong tokens agree too well."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
from attrs import field, frozen

from xcfg.comparator.defect import Defect
from xcfg.model.attempt import SideResult
from xcfg.model.json import tupled
from xcfg.model.sample import Samples, TokenBatch
from xcfg.model.status import Status


@frozen(kw_only=True, eq=False)
class FrozenTokens:
    """A token batch in the flat form of :class:`Samples`, one row a sequence; its logprobs and positions mean nothing.

    Made once for all cases: the tuples of a large batch take longer to flatten than a comparison.
    """

    digest: str
    weight_version: str
    ids: tuple[str, ...] = field(converter=tupled)
    samples: Samples


def frozen_tokens(batch: TokenBatch) -> FrozenTokens:
    """The batch, flattened."""
    prompts, responses = [len(row) for row in batch.prompts], [len(row) for row in batch.responses]
    scored = sum(responses)
    rows = chain.from_iterable(zip(batch.prompts, batch.responses, strict=True))
    total = sum(prompts) + scored
    return FrozenTokens(
        digest=batch.digest(),
        weight_version=batch.weight_version,
        ids=batch.ids,
        samples=Samples(
            sequence=np.arange(len(batch.ids)),
            rank=np.zeros(len(batch.ids), dtype=np.int64),
            prompt_length=prompts,
            response_length=responses,
            input_ids=_flat(rows, total, np.int64),
            position_ids=np.zeros(total, dtype=np.int64),
            action_mask=_flat(batch.action_masks, scored, np.bool_),
            logprobs=np.zeros(scored, dtype=np.float32),
        ),
    )


def frozen_defects(side: str, result: SideResult, frozen: FrozenTokens) -> list[Defect]:
    """A defect where a side names another batch, other sequences or other weights than the batch was frozen with."""
    identity = result.identity
    reasons = []
    if identity.token_digest != frozen.digest:
        reasons.append(f"token_digest: {side} scored {identity.token_digest!r}, the frozen batch is {frozen.digest!r}")
    if frozen.weight_version and identity.weight_version != frozen.weight_version:
        reasons.append(
            f"weight_version differs: the tokens were recorded with {frozen.weight_version!r}, {side} has "
            f"{identity.weight_version!r}"
        )
    if other := set(frozen.ids) ^ set(result.sequence_ids):
        reasons.append(f"sequence_ids: {min(other)!r} ({len(other)} in all) is not in both {side} and the frozen batch")
    return [Defect(Status.INVALID_IDENTITY, reason) for reason in reasons]


def _flat(rows: Iterable[Iterable[int]], count: int, dtype: type[np.generic]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(rows), dtype=dtype, count=count)
