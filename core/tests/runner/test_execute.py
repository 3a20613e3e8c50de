import numpy as np

from xcfg.model.status import Status
from xcfg.runner.artifacts import load_plan, load_run
from xcfg.testing.fakes import FakeScorer


def alone(side):
    """A pair of one engine, where the other side does not matter."""
    return side, side


def _counts(report):
    engines = report.engines
    return engines.distinct, engines.constructed, engines.reused_from_disk


def _failures(report):
    return {run.config.digest(): run.failure for run in report.sides.values() if run.failure is not None}


def test_one_engine_a_distinct_configuration_and_none_when_all_is_sealed(finished):
    world, plan, report = finished
    # two rollout dtypes and one training engine: the batch size is a request-time value
    assert _counts(report) == (3, 3, 0)
    assert len(report.sides) == 5
    assert _failures(report) == {}
    assert report.fake

    again = world.copy("again").run(plan)
    assert _counts(again) == (3, 0, 3)
    assert all(run.reused and run.attempt == 1 for run in again.sides.values())
    for key, run in report.sides.items():
        assert run.result == again.sides[key].result
        assert run.result.samples.logprobs.tobytes() == again.sides[key].result.samples.logprobs.tobytes()
        assert run.measured == again.sides[key].measured

    out = world.root / "again"
    loaded = load_run(out, load_plan(out))
    assert {key: run.result for key, run in loaded.sides.items()} == {k: r.result for k, r in report.sides.items()}
    assert loaded.engines == again.engines
    assert loaded.tokens.digest() == report.tokens.digest()
    assert loaded.identity == report.identity


def test_one_missing_seal_runs_that_side_alone(finished):
    world, plan, first = finished
    world = world.copy("unsealed")
    lost = next(iter(first.sides.values()))
    (world.out / "sides" / lost.side_id / "attempt-0001" / "COMPLETE").unlink()
    report = world.run(plan)
    assert _counts(report) == (3, 1, 2)
    again = report.sides[lost.config.digest()]
    assert (again.attempt, again.reused) == (2, False)
    assert sum(run.reused for run in report.sides.values()) == 4
    assert again.result.samples.logprobs.tobytes() == lost.result.samples.logprobs.tobytes()


def test_a_flipped_bit_is_found_kept_and_run_again(finished):
    world, plan, first = finished
    world = world.copy("flipped")
    hurt = next(iter(first.sides.values()))
    path = world.out / "sides" / hurt.side_id / "attempt-0001" / "samples.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    shown = load_run(world.out, plan).sides[hurt.config.digest()]
    assert (shown.failure.status, shown.result) == (Status.INVALID_ARTIFACT, None)
    assert "samples.safetensors" in shown.failure.reason

    report = world.run(plan)
    assert [(item.side_id, item.attempt) for item in report.refused] == [(hurt.side_id, 1)]
    assert report.sides[hurt.config.digest()].attempt == 2
    assert path.read_bytes() == bytes(data)


def test_the_scored_rows_are_those_of_the_scorer_itself(world):
    side = world.side("rollout", rollout__dtype="float32")
    report = world.run(world.plan(alone(side)))
    result = report.sides[side.digest()].result
    assert result.sequence_ids == ("a", "b")
    assert result.samples.input_ids.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert result.samples.action_mask.tolist() == [True, True, True, False, True]
    assert result.identity.token_digest == report.tokens.digest()
    assert result.identity.state_before == result.identity.state_after != ""
    assert {name: item.state.value for name, item in result.provenance.knobs.items()} == {"rollout.dtype": "applied"}

    from pathlib import Path

    from xcfg.model.scorer import Role
    from xcfg.plugin.protocols import ScoreRequest, ScorerSpec

    scorer = FakeScorer()
    engine = {"rollout.dtype": "float32"}
    model = Path(world.root / "model")
    scorer.open(
        ScorerSpec(role=Role.ROLLOUT, checkpoint=model, trust_remote_code=False, rank=0, world_size=1, engine=engine)
    )
    expected = scorer.score(report.tokens, ScoreRequest())
    np.testing.assert_array_equal(result.samples.logprobs, expected.samples.logprobs)


def test_sampled_tokens_are_frozen_and_the_sampler_engine_is_shared(world):
    sides = [world.side("rollout", batch__size=size) for size in (1, 2)]
    plan = world.plan(*[(side, world.side("training")) for side in sides], sample=True)
    events = []
    report = world.run(plan, on_event=events.append)
    assert _counts(report) == (2, 2, 0)
    assert report.tokens.ids == ("p", "q")
    assert all(len(row) == 4 for row in report.tokens.responses)
    again = world.run(plan)
    assert _counts(again) == (2, 0, 2)
    assert again.tokens.sampled_logprobs == report.tokens.sampled_logprobs
    # the production configuration scores at temperature 1 what it sampled at temperature 1
    result = report.sides[sides[0].digest()].result
    sampled = np.array([value for row in report.tokens.sampled_logprobs for value in row], dtype=np.float32)
    np.testing.assert_allclose(result.samples.logprobs, sampled, atol=1e-6)
    assert [type(event).__name__ for event in events][:3] == ["Scheduled", "GroupStarted", "TokensFrozen"]
    assert all(event.describe() for event in events)


def test_a_sampler_outside_the_selection_is_launched_for_the_tokens_alone(world):
    baseline = world.side("rollout", rollout__dtype="float32")
    plan = world.plan((world.side("rollout"), world.side("training")), sample=True, baseline=baseline)
    report = world.run(plan)
    assert _counts(report) == (3, 3, 0)
    assert baseline.digest() not in report.sides
    assert _failures(report) == {}
    assert _counts(world.run(plan)) == (2, 0, 2)


def test_a_changed_plugin_environment_makes_a_new_attempt(finished, registry):
    world, plan, _ = finished
    pair = (plan.cases[0].rollout, plan.cases[0].training)
    report = world.copy("changed").run(world.plan(pair), registry(environment={"SOME_SWITCH": "1"}))
    assert [run.attempt for run in report.sides.values()] == [2, 2]
    assert ["SOME_SWITCH" in item.reason for item in report.refused] == [True, True]


def test_no_resume_runs_again_and_keeps_what_was(finished):
    world, plan, _ = finished
    world = world.copy("anew")
    report = world.run(world.plan((plan.cases[0].rollout, plan.cases[0].training)), resume=False)
    assert [run.attempt for run in report.sides.values()] == [2, 2]
    assert report.refused == ()
    assert len(list(world.out.glob("sides/*/attempt-0001/COMPLETE"))) == 5


def test_repeats_measure_noise_and_are_not_reused_for_more(world):
    plan = world.plan((world.side("rollout", "Jitter"), world.side("rollout", batch__size=1)))
    report = world.run(plan, repeat=3)
    noisy, quiet = (run.measured.repeats for run in report.sides.values())
    # scored three times: -1, -1 - 2**-10, -1 - 2**-9 nats
    assert noisy == {"count": 3, "bitwise_equal": False, "max_abs_difference": 2.0**-9}
    assert quiet == {"count": 3, "bitwise_equal": True, "max_abs_difference": 0.0}
    assert world.run(plan, repeat=2).engines.constructed == 0
    assert world.run(plan, repeat=4).engines.constructed == 2


def test_two_engines_at_once_share_the_folder(world):
    plan = world.plan((world.side("rollout"), world.side("training")))
    report = world.run(plan, jobs=2)
    assert _counts(report) == (2, 2, 0)
    assert _failures(report) == {}
    assert {path.name for path in (world.out / "launches").iterdir()} == {"0001", "0002"}


def test_kernel_operators_are_bound_and_read_back(world):
    from xcfg.model.kernel import OperatorChoice

    operators = {"selected_logprob": OperatorChoice(backend="fake_coarse")}
    side = world.side("rollout", "fake_kernel", operators=operators, logp__backend="fake_coarse")
    plain = world.side("rollout", "fake_kernel", rollout__dtype=None)
    report = world.run(world.plan((side, plain)))
    provenance = report.sides[side.digest()].result.provenance
    assert provenance.unsound == ()
    assert provenance.knobs["logp.backend"].observed == "fake_coarse"
    assert provenance.operators["selected_logprob"].concrete.endswith("coarse_selected_logprob")
    # both sides share an engine: the operator and its knob take effect at request time
    assert report.engines.distinct == 1
    chosen = report.sides[plain.digest()].result.provenance.knobs["rollout.dtype"]
    assert (chosen.requested, chosen.materialized, chosen.observed, chosen.state) == (
        None,
        "bfloat16",
        "bfloat16",
        "applied",
    )


def test_the_child_sees_a_short_declared_environment_and_its_own_side_only(world, registry, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    side = world.side("rollout", "Environment", rollout__dtype="float32", execution__threads=3)
    plan = world.plan((side, world.side("training", training__compute_dtype="float16")))
    report = world.run(plan, registry(environment={"PLUGIN_SWITCH": "on"}))
    seen = report.sides[side.digest()].result.identity.recorded["environment"]
    assert seen["PLUGIN_SWITCH"] == "on"
    assert seen["OMP_NUM_THREADS"] == "3"
    assert not {"SECRET_TOKEN", "NCCL_ALGO"} & set(seen)
    first = (world.out / "launches" / "0001" / "spec.json").read_text()
    assert "training" not in first and "float16" not in first
