"""Scoring one side run on an open engine and collecting the rank's evidence."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import numpy as np
from attrs import evolve

from xcfg.model.json import Json
from xcfg.model.kernel import OPERATOR_OF_KNOB, BoundKernel
from xcfg.model.knob import Lifecycle
from xcfg.model.sample import Samples, TokenBatch
from xcfg.model.weights import WEIGHTS
from xcfg.plugin.protocols import Scored, Scorer, ScoreRequest, ScorerIdentity, Settings
from xcfg.runner.child_builds import Builds
from xcfg.runner.child_engine import Knobs
from xcfg.runner.child_operators import bind
from xcfg.runner.launch import Step
from xcfg.runner.memory import peak_rss
from xcfg.runner.rank_record import KnobReading, RankRecord, Repeats


def score_step(
    scorer: Scorer,
    identity: ScorerIdentity,
    knobs: Knobs,
    builds: Builds,
    step: Step,
    batch: TokenBatch,
    engine: Settings,
    rank: int,
) -> tuple[RankRecord, Samples]:
    """Apply the step's request-time values, bind its operators, score, and read everything back.

    Raises UnsupportedError before anything is scored, or whatever the scorer raises.
    """
    settings = Settings(engine=dict(engine.engine), env=dict(engine.env))
    for task in step.knobs:
        if task.lifecycle is Lifecycle.REQUEST and task.name not in OPERATOR_OF_KNOB:
            knobs.probe(task, step.knobs)
            knobs.draft(task, settings)
    with ExitStack() as stack:
        bound = bind(scorer, step.operators, builds, stack)
        request = ScoreRequest(settings=settings.request, operators=bound.calls)
        before = scorer.state_digest()
        scored = scorer.score(batch, request)
        repeats = _repeat(scored, [scorer.score(batch, request) for _ in range(knobs.spec.repeat - 1)])
        after = scorer.state_digest()
        operators = bound.identify(scored.samples.rows)
    record = RankRecord(
        rank=rank,
        world_size=knobs.spec.world_size,
        token_digest=batch.digest(),
        sequence_ids=batch.ids,
        checkpoint_digest=identity.checkpoint_digest,
        tokenizer_digest=identity.tokenizer_digest,
        optimizer_steps=identity.optimizer_steps,
        recorded=identity.recorded,
        state_before=before,
        state_after=after,
        semantics=scored.semantics,
        info=scored.rank,
        knobs={**_readings(scorer, knobs, step, operators, identity), **builds.readings(operators)},
        operators=operators,
        repeats=repeats,
        peak_rss=peak_rss(),
        samples="",
    )
    return record, scored.samples


def _readings(
    scorer: Scorer, knobs: Knobs, step: Step, operators: Mapping[str, BoundKernel], identity: ScorerIdentity
) -> dict[str, KnobReading]:
    found = {}
    for task in step.knobs:
        if task.name in OPERATOR_OF_KNOB:
            found[task.name] = _kernel_reading(task.value, operators.get(OPERATOR_OF_KNOB[task.name]))
        elif task.name == WEIGHTS:
            found[task.name] = _weights_reading(task.value, identity.checkpoint_digest, knobs.spec.weights)
        else:
            found[task.name] = knobs.read_back(task, scorer.live)
    return found


def _weights_reading(value: Json, loaded: str, known: Mapping[str, Json]) -> KnobReading:
    """Which copy of the checkpoint it is whose digest the scorer proves; of the checkpoint itself that digest."""
    if loaded not in known:
        return KnobReading(materialized=value, unobservable=f"weights of digest {loaded:.12} are no known copy")
    return KnobReading(materialized=value, observed=loaded if known[loaded] is None else known[loaded])


def _kernel_reading(value: Json, bound: BoundKernel | None) -> KnobReading:
    if bound is None:
        return KnobReading(materialized=value, unobservable="no backend was called")
    return KnobReading(materialized=value, observed=bound.backend)


def _repeat(first: Scored, others: list[Scored]) -> Repeats:
    result = Repeats(count=1, bitwise_equal=True)
    for other in others:
        result = evolve(_against(first.samples, other.samples, result), count=result.count + 1)
    return result


def _against(first: Samples, other: Samples, former: Repeats) -> Repeats:
    arrays, others = first.arrays(), other.arrays()
    same_rows = all(np.array_equal(arrays[name], others[name]) for name in arrays if name != "logprobs")
    if not same_rows:
        return evolve(former, bitwise_equal=False, max_abs_difference=None)
    bitwise = former.bitwise_equal and arrays["logprobs"].tobytes() == others["logprobs"].tobytes()
    gaps = np.abs(arrays["logprobs"].astype(np.float64) - others["logprobs"].astype(np.float64))
    largest = float(gaps.max(initial=0.0))
    known = former.max_abs_difference is not None and np.isfinite(largest)
    return evolve(
        former,
        bitwise_equal=bitwise,
        max_abs_difference=max(former.max_abs_difference or 0.0, largest) if known else None,
    )
