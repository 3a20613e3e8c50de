"""Where the token batch of a plan comes from: prompts that production samples or a recorded batch, whole or limited."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.model.experiment import SampleSource
from xcfg.model.json import Json, tupled
from xcfg.model.plan import Plan
from xcfg.model.sample import TokenBatch
from xcfg.plugin.protocols import Prompt
from xcfg.runner.frozen import freeze_tokens
from xcfg.runner.store import Store
from xcfg.runner.tokens import read_batch, read_prompts


@frozen(kw_only=True)
class Source:
    """Either ``sample``, with the ``prompts`` it starts from, or a ``recorded`` batch."""

    sample: SampleSource | None = None
    prompts: tuple[Prompt, ...] = field(default=(), converter=tupled)
    recorded: TokenBatch | None = None

    @classmethod
    def of(cls, plan: Plan) -> Source:
        """The plan's source, read. Raises InvalidInput naming every faulty line."""
        tokens, root = plan.experiment.tokens, Path(plan.root)
        if tokens.sample is None:
            batch = read_batch(root / tokens.recorded)
            return cls(recorded=batch if plan.limit is None else limited_batch(batch, plan.limit))
        prompts = read_prompts(root / tokens.sample.prompts)
        if plan.limit is None:
            return cls(sample=tokens.sample, prompts=prompts)
        longest = min(tokens.sample.max_new_tokens, plan.limit)
        kept = prompts[: plan.limit // longest]
        return cls(sample=evolve(tokens.sample, max_new_tokens=longest), prompts=kept)


def limited_batch(batch: TokenBatch, limit: int) -> TokenBatch:
    """The first sequences of the batch, whole, as long as they have at most ``limit`` active tokens together.

    The first one with an active token is kept however long it is: without it nothing would be compared.
    """
    kept = active = 0
    for mask in batch.action_masks:
        if active and active + sum(mask) > limit:
            break
        kept, active = kept + 1, active + sum(mask)
    reported = batch.sampled_logprobs
    return evolve(
        batch,
        ids=batch.ids[:kept],
        prompts=batch.prompts[:kept],
        responses=batch.responses[:kept],
        action_masks=batch.action_masks[:kept],
        sampled_logprobs=None if reported is None else reported[:kept],
    )


def freeze_recorded(store: Store, batch: TokenBatch | None, plan: Plan) -> TokenBatch | None:
    """Freeze a recorded batch, if that is what the plan names."""
    if batch is not None:
        limit: dict[str, Json] = {} if plan.limit is None else {"limit": plan.limit}
        freeze_tokens(store.tokens, batch, {"recorded": plan.experiment.tokens.recorded, **limit})
    return batch
