import hashlib

import numpy as np
import pytest
from attrs import evolve
from safetensors.numpy import save

from xcfg.model.capability import Unobservable
from xcfg.model.identity import LogprobSemantics
from xcfg.model.ids import digest
from xcfg.model.kernel import BoundKernel, OperatorChoice
from xcfg.model.provenance import KnobState
from xcfg.model.sample import RankInfo, Samples
from xcfg.model.status import Status
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.durable import encode
from xcfg.runner.merge import Expected, SideInvalid, merge
from xcfg.runner.provenance import knob_provenance, side_provenance
from xcfg.runner.rank_record import KnobReading, RankRecord, Repeats, record_name, tensor_name


def _samples(rank, sequence):
    return Samples(
        sequence=[sequence],
        rank=[rank],
        prompt_length=[1],
        response_length=[1],
        input_ids=[5, 6],
        position_ids=[0, 1],
        action_mask=np.array([True]),
        logprobs=np.array([-1.5], dtype=np.float32),
    )


def _record(rank, rows, **changes):
    record = RankRecord(
        rank=rank,
        world_size=2,
        token_digest="t",
        sequence_ids=["a", "b"],
        checkpoint_digest="c",
        tokenizer_digest="k",
        optimizer_steps=0,
        state_before=f"state{rank}",
        state_after=f"state{rank}",
        semantics=LogprobSemantics(vocab_size=17),
        info=RankInfo(rank=rank, world_size=2, compute_dtype="float32"),
        knobs={"batch.size": KnobReading(materialized=2, observed=2)},
        repeats=Repeats(count=2, bitwise_equal=rank == 0, max_abs_difference=0.25 * rank),
        phases={"score": 1.0 + rank},
        peak_rss={"process": 10 + rank, "children": 7},
        samples=hashlib.sha256(save(rows.arrays())).hexdigest(),
    )
    return evolve(record, **changes)


@pytest.fixture
def put(tmp_path, world):
    def write(changes=({}, {}), samples=None):
        samples = samples or (_samples(0, 1), _samples(1, 0))
        for rank in range(2):
            (tmp_path / tensor_name(rank)).write_bytes(save(samples[rank].arrays()))
            (tmp_path / record_name(rank)).write_bytes(encode(_record(rank, samples[rank], **changes[rank])))
        return merge(
            tmp_path,
            Expected(
                config=world.side("training", batch__size=2),
                ranks=2,
                token_digest="t",
                checkpoint=CheckpointDigest(weights="c", tokenizer="k"),
                fake=False,
            ),
        )

    return write


def test_ranks_that_agree_become_one_result(put):
    merged = put()
    result = merged.result
    assert result.samples.sequence.tolist() == [0, 1]
    assert result.samples.rank.tolist() == [1, 0]
    assert result.identity.state_before == digest(["state0", "state1"])
    assert result.provenance.unsound == ()
    assert merged.measured.phases == {"score": 2.0}
    assert merged.measured.peak_rss == {"0": 10, "0.children": 7, "1": 11, "1.children": 7}
    assert merged.measured.repeats == {"count": 2, "bitwise_equal": False, "max_abs_difference": 0.25}


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"tokenizer_digest": "other"}, Status.INVALID_IDENTITY, "tokenizer_digest: k on rank 0, other on rank 1"),
        ({"token_digest": "other"}, Status.INVALID_IDENTITY, "token_digest"),
        ({"optimizer_steps": 1}, Status.INVALID_IDENTITY, "optimizer_steps: 0 on rank 0, 1 on rank 1"),
        ({"semantics": LogprobSemantics(temperature=0.5)}, Status.INVALID_IDENTITY, "semantics"),
        ({"info": RankInfo(rank=0, world_size=2, compute_dtype="float32")}, Status.INVALID_ARTIFACT, "ranks [0, 1]"),
        ({"info": RankInfo(rank=1, world_size=3, compute_dtype="float32")}, Status.INVALID_ARTIFACT, "saw 3 ranks"),
        ({"samples": "0" * 64}, Status.INVALID_ARTIFACT, "tensors"),
        ({"schema": "xcfg.rank/2"}, Status.INVALID_ARTIFACT, "schema"),
        ({"sequence_ids": ["a"]}, Status.INVALID_IDENTITY, "sequence_ids"),
    ],
)
def test_ranks_that_disagree_are_no_result(put, changes, status, reason):
    with pytest.raises(SideInvalid) as found:
        put(({}, changes))
    assert found.value.status == status
    assert reason in found.value.reason


def test_rows_of_another_rank_or_outside_the_batch(put):
    with pytest.raises(SideInvalid, match="ranks \\[0, 1\\]"):
        put(samples=(_samples(0, 0), _samples(0, 1)))
    with pytest.raises(SideInvalid, match="does not hold"):
        put(samples=(_samples(0, 0), _samples(1, 2)))


def test_both_ranks_may_be_wrong_together(put):
    with pytest.raises(SideInvalid, match="checkpoint_digest is x, the plan's is c"):
        put(({"checkpoint_digest": "x"}, {"checkpoint_digest": "x"}))


def test_an_unknown_state_of_one_rank_is_unknown(put):
    assert put(({}, {"state_after": ""})).result.identity.state_after == ""


def _state(requested, *readings):
    found = knob_provenance(requested, dict(enumerate(readings)))
    return found.state, found.observed


def test_a_knob_holds_where_all_three_values_are_one():
    reading = KnobReading(materialized="sdpa", observed="sdpa")
    assert _state("sdpa", reading, reading) == (KnobState.APPLIED, "sdpa")
    assert _state("eager", reading)[0] == KnobState.MISMATCH
    assert _state("sdpa", KnobReading(materialized="sdpa", observed="eager")) == (KnobState.MISMATCH, "eager")
    assert _state(1.0, KnobReading(materialized=1, observed=1.0)) == (KnobState.APPLIED, 1.0)
    assert _state(1, KnobReading(materialized=True, observed=True))[0] == KnobState.MISMATCH
    assert _state(True, KnobReading(materialized=True, observed=1))[0] == KnobState.MISMATCH


def test_nothing_requested_is_the_engines_choice():
    found = knob_provenance(None, {0: KnobReading(observed="paged")})
    assert (found.requested, found.materialized, found.observed, found.state) == (None, "paged", "paged", "applied")
    assert _state(None, KnobReading(materialized="a", observed="b"))[0] == KnobState.MISMATCH
    assert _state("asked", KnobReading(materialized=None, observed="asked"))[0] == KnobState.MISMATCH


def test_what_is_not_seen_on_every_rank_is_unobservable():
    seen = KnobReading(materialized=1, observed=1)
    assert _state(1, seen, KnobReading(materialized=1, unobservable=Unobservable().reason))[0] == KnobState.UNOBSERVABLE
    found = knob_provenance(1, {0: seen, 1: None})
    assert (found.state, found.reason) == (KnobState.UNOBSERVABLE, "not reported by rank 1")


def test_ranks_that_observe_different_values_are_a_mismatch_with_both():
    readings = (KnobReading(materialized=1, observed=1), KnobReading(materialized=1, observed=2))
    assert _state(1, *readings) == (KnobState.MISMATCH, {"0": 1, "1": 2})


def test_inapplicable_knobs_and_other_operators_are_in_the_provenance(world):
    config = evolve(
        world.side("rollout", operators={"norm": OperatorChoice(backend="fast")}),
        inapplicable={"layout.padding_side": "the engine is ragged"},
    )
    good = _record(0, _samples(0, 0), operators={"norm": BoundKernel(backend="fast", concrete="Fast")}, knobs={})
    found = side_provenance(config, [good])
    assert found.unsound == ()
    assert found.knobs["layout.padding_side"].state == KnobState.INAPPLICABLE
    other = evolve(good, operators={"norm": BoundKernel(backend="slow", concrete="Slow")})
    assert side_provenance(config, [other]).unsound == ("operators.norm",)
    split = evolve(good, rank=1, operators={"norm": BoundKernel(backend="fast", concrete="Other")})
    assert side_provenance(config, [good, split]).unsound == ("operators.norm",)
    assert side_provenance(config, [evolve(good, operators={})]).unsound == ("operators.norm",)


def test_a_rank_without_positions_is_no_result(put):
    unknown = evolve(_samples(0, 1), position_ids=[-1, -1])
    with pytest.raises(SideInvalid, match="below 0"):
        put(samples=(unknown, _samples(1, 0)))


def test_an_operator_that_was_never_called_is_not_identified():
    from xcfg.runner.child_operators import Operators
    from xcfg.runner.counted import Counted

    class Backend:
        def identify(self, bound):
            return BoundKernel(backend=bound.backend, concrete="c")

    def operator(value):
        return value + 1

    operator.backend = "mine"
    counted = Counted(operator)
    bound = Operators(calls={"o": counted}, backends={"o": Backend()}, hosted={})
    assert bound.identify(rows=3) == {}
    assert bound.identify(rows=0)["o"].backend == "mine"
    assert counted(1) == 2 and counted.backend == "mine"
    assert bound.identify(rows=3)["o"].backend == "mine"
