"""Two recorded sides judged: every record in order, joined on disk, compared in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from attrs import evolve, frozen

from xcfg.comparator.defect import Defect, named
from xcfg.comparator.drift import drift
from xcfg.comparator.judging import judged
from xcfg.comparator.ranks import metadata
from xcfg.comparator.recorded.declared import Declared, declared
from xcfg.comparator.recorded.disk import full_disk
from xcfg.comparator.recorded.faults import Faults, Kind
from xcfg.comparator.recorded.ingest import ingest
from xcfg.comparator.recorded.join import Join
from xcfg.comparator.recorded.pairs import PairsWriter, StoredPairs
from xcfg.comparator.recorded.store import Store
from xcfg.comparator.tolerance import Row, dtype_findings, lowest, row
from xcfg.model.knob import SourceClass
from xcfg.model.recorded import Record
from xcfg.model.result import Comparison, Finding, RankComparison
from xcfg.model.status import Status
from xcfg.model.tolerance import ToleranceContract


@frozen(kw_only=True)
class Terms:
    """How recorded sides are judged. ``dtype`` is the compute dtype of records that state none; empty: unknown.

    ``strict`` makes every field a side leaves out ``invalid_identity``. ``clip_range`` replaces the contract's ratio
    interval.
    """

    contract: ToleranceContract
    dtype: str = ""
    strict: bool = False
    clip_range: tuple[float, float] | None = None


@frozen(kw_only=True)
class Recorded:
    """The comparison and its paired tokens, which live in the scratch folder; None where nothing was paired."""

    comparison: Comparison
    pairs: StoredPairs | None = None


def compare_recorded(
    rollout: Iterable[Record],
    training: Iterable[Record],
    terms: Terms,
    scratch: Path,
    seen: Callable[[int, int], None] | None = None,
) -> Recorded:
    """Judge recorded ``training`` against recorded ``rollout``.

    Memory does not grow with the number of tokens: records go to files under ``scratch`` (an existing folder), are
    joined by id through an index on disk, and read back in blocks. ``seen(side, records)`` is told of progress.
    Raises what reading the records raises (ArtifactError), and EnvironmentFault where the disk is full.
    """
    faults = Faults()
    with full_disk(scratch), Store(scratch) as store:
        for side, records in enumerate((rollout, training)):
            ingest(side, _told(side, records, seen), store, faults)
        store.close_index()
        sides = declared(store, terms.dtype, faults)
        base = _base(sides, terms)
        if faults.has(Status.INVALID_ARTIFACT):
            return Recorded(comparison=_invalid(base, faults.defects()))
        with PairsWriter(scratch, wide=(store.wide(0), store.wide(1))) as writer:
            join = Join(store=store, faults=faults, writer=writer)
            join.run()
            pairs = writer.finish()
        unknown = sorted(join.unknown | {name for side in sides for name in side.unknown})
        base = evolve(
            base,
            assumed=tuple(unknown),
            active_tokens=pairs.active_tokens,
            findings=(*base.findings, *(item for side in join.replicas for item in side.finding())),
        )
        if terms.strict and unknown:
            place = join.unknown_place or next(side.unknown_place for side in sides if side.unknown)
            sentence = f"{', '.join(unknown)} not stated on both sides, first in {place}"
            faults.add(Kind.UNKNOWN, f"strict: {sentence}")
        if not pairs.active_tokens and join.paired == join.found:
            total = f"none of {join.response_tokens} response tokens in {join.paired} sequences is active"
            faults.add(Kind.INACTIVE, total)
        if defects := faults.defects():
            return Recorded(comparison=_invalid(base, defects), pairs=pairs)
        return Recorded(comparison=_judge(base, pairs, sides, terms), pairs=pairs)


def _told(side: int, records: Iterable[Record], seen: Callable[[int, int], None] | None) -> Iterator[Record]:
    for number, record in enumerate(records, start=1):
        yield record
        if seen is not None:
            seen(side, number)


def _base(sides: Sequence[Declared], terms: Terms) -> Comparison:
    judging = _row(sides, terms)
    return Comparison(
        status=Status.INVALID_ARTIFACT,
        dtype=judging.dtype,
        threshold=judging.threshold,
        limits=judging.limits,
        clip_interval=terms.clip_range or terms.contract.clip_interval,
        contract=terms.contract.ref,
        findings=(*dtype_findings("rollout", sides[0].ranks), *dtype_findings("training", sides[1].ranks)),
    )


def _row(sides: Sequence[Declared], terms: Terms) -> Row:
    return row(lowest([info.compute_dtype for side in sides for info in side.ranks]), terms.contract)


def _invalid(base: Comparison, defects: list[Defect]) -> Comparison:
    defect = named(defects)
    return evolve(base, status=defect.status, reason=defect.reason)


SAME_BITS = 16
"""Active tokens from which no difference in any bit is worth a word: two engines rarely agree so far."""


def _same_bits(comparison: Comparison) -> list[Finding]:
    """A finding where the two files hold the very same numbers; the verdict stays."""
    if comparison.metrics.get("frac_unequal") != 0.0 or comparison.active_tokens < SAME_BITS:
        return []
    return [
        Finding(
            source_class=SourceClass.LOGICAL.value,
            subclass="observation",
            rule="bitwise_equal",
            evidence={"active_tokens": comparison.active_tokens, "frac_unequal": 0.0},
            advice="every logprob is equal in every bit: make sure that the training side was computed, and not copied "
            "from the rollout",
            confidence="low",
        )
    ]


def _judge(base: Comparison, pairs: StoredPairs, sides: Sequence[Declared], terms: Terms) -> Comparison:
    interval = terms.clip_range or terms.contract.clip_interval
    comparison = judged(base, pairs, _row(sides, terms), interval)
    rollout, training = ({info.rank: metadata(info) for info in side.ranks} for side in sides)
    groups = list(pairs.by_rank())
    return evolve(
        comparison,
        findings=(*comparison.findings, *_same_bits(comparison)),
        per_rank=[
            RankComparison(
                rollout_rank=ranks[0],
                train_rank=ranks[1],
                active_tokens=group.active_tokens,
                metrics=comparison.metrics if len(groups) == 1 else drift(group, interval).metrics,
                rollout=rollout[ranks[0]],
                training=training[ranks[1]],
            )
            for ranks, group in groups
        ],
    )
