"""Values in force of what a scoring call did with its rows, positions and logits."""

from __future__ import annotations

from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_torch.collate import Part
from xcfg_torch.head import FULL_VOCABULARY, VOCAB_PARALLEL
from xcfg_torch.live import Live
from xcfg_torch.passes import passes
from xcfg_torch.scoring import OPERATOR
from xcfg_torch.semantics import vocab_size

Observed = Json | Unobservable
NOT_SCORED = Unobservable("nothing was scored yet")


def batch_size(live: Live) -> Observed:
    """The batch size in force, where the rows that passed bear it out.

    A last batch, or one that holds every sequence, may be smaller than the size in force.
    """
    if live.collation is None:
        return NOT_SCORED
    rows: dict[int, int] = {}
    for step, (forward, *_) in zip(live.steps, passes(live), strict=True):
        if step.part is not Part.FILLER:
            rows[step.batch] = rows.get(step.batch, 0) + forward.sequences
    size = live.collation.size
    expected = {batch: min(size, live.sequences - batch * size) for batch in rows}
    return size if rows == expected else _contradicted(live, f"batches of {size}")


def micro_size(live: Live) -> Observed:
    """The micro-batch size in force (the batch size where none is set), where the rows that passed bear it out.

    A last micro-batch may be smaller than the size in force.
    """
    if live.collation is None:
        return NOT_SCORED
    size = live.collation.size
    micro = live.collation.micro or size
    left: dict[int, int] = {}
    for step, (forward, *_) in zip(live.steps, passes(live), strict=True):
        if step.part is Part.FILLER:
            continue
        rest = left.get(step.batch, min(size, live.sequences - step.batch * size))
        if forward.sequences != min(micro, rest):
            return _contradicted(live, f"micro-batches of {micro}")
        left[step.batch] = rest - forward.sequences
    return micro


def _contradicted(live: Live, expected: str) -> Unobservable:
    return Unobservable(f"passes of {[step[0].sequences for step in passes(live)]} rows do not come from {expected}")


def padding_side(live: Live) -> Observed:
    """The side of the attention masks' zeros; where no row needed padding, the side the collation would pad."""
    if live.collation is None:
        return NOT_SCORED
    seen = live.seen.padding_side
    return live.collation.padding_side if seen == "none" else seen


def position_ids(live: Live) -> Observed:
    """How the positions that went in count; where no row tells one way from the other, how the collation counts."""
    if live.collation is None or not live.seen.forwards:
        return NOT_SCORED
    ways = frozenset.intersection(*(item.positions for item in live.seen.forwards))
    if not ways:
        return Unobservable("the positions that went in count in no known way")
    return live.collation.positions if live.collation.positions in ways else next(iter(ways))


def packing(live: Live) -> Observed:
    """Whether a row held more than one sequence, each kept to itself by a block-causal mask.

    Where every pass had one sequence, the mask tells: a packed row of one has a mask of queries and keys as well.
    """
    packed = [item for item in live.seen.forwards if item.packed]
    if any(not item.blocks for item in packed):
        return Unobservable("a row held several sequences and its mask let them see each other")
    return any(item.blocks for item in live.seen.forwards) if live.seen.forwards else NOT_SCORED


def context_parallel_size(live: Live) -> Observed:
    """1 where the passes of every step had all the columns of its collated batch.

    Of decoded rows, whose prompts are padded by themselves, where each pass and what was kept are all its mask covers.
    """
    if not live.seen.forwards:
        return NOT_SCORED
    if live.route.decode:
        whole = all(item.past + item.width == item.columns for item in live.seen.forwards)
    else:
        seen = [sum(item.width for item in step) for step in passes(live)]
        whole = seen == [step.width for step in live.steps]
    return 1 if whole else Unobservable("a pass was narrower than its batch")


def vocab_padding(live: Live) -> Observed:
    """1 where the output head has the rows that the checkpoint gives it."""
    rows, own = vocab_size(live.model), int(live.model.config.get_text_config().vocab_size)
    return 1 if rows == own else Unobservable(f"the output head has {rows} rows, the checkpoint {own}")


def backend(live: Live) -> Observed:
    """Backend of the operator that scored, as the bound callable names it."""
    if OPERATOR not in live.operators:
        return NOT_SCORED
    named = getattr(live.operators[OPERATOR], "backend", None)
    return named or Unobservable(f"the callable bound for {OPERATOR} does not name its backend")


def deterministic(live: Live) -> Observed:
    """Torch's switch as it stood while the operator ran."""
    seen = live.seen.deterministic
    return next(iter(seen)) if len(seen) == 1 else (Unobservable("torch's switch was moved") if seen else NOT_SCORED)


def tp_layout(live: Live) -> Observed:
    """``full-vocabulary`` where the operator got rows of every column, ``vocab-parallel`` of this rank's alone."""
    seen = live.seen.operator_columns
    if not seen:
        return NOT_SCORED
    if seen == {live.columns}:
        return FULL_VOCABULARY
    own = live.head is not None and seen == {live.head.columns}
    return VOCAB_PARALLEL if own else Unobservable(f"rows of {sorted(seen)} columns")


def reduction_policy(live: Live) -> Observed:
    """The order of sums that the bound callable names; ``native`` where it names none."""
    if OPERATOR not in live.operators:
        return NOT_SCORED
    policy: Any = getattr(live.operators[OPERATOR], "reduction_policy", "native")
    return str(policy)
