"""Cases on engines of their own."""

from xcfg.model.scorer import Role
from xcfg.runner.execute import execute
from xcfg.runner.options import RunOptions
from xcfg.runner.schedule import alone, with_sampler


def plan_of(world):
    training = world.side("training")
    return world.plan((world.side("rollout"), training), (world.side("rollout", batch__size=2), training))


def test_an_engine_for_each_side_of_each_case(world, registry):
    plan = plan_of(world)
    groups = alone(plan.runnable, registry())
    assert [(item.case, item.sides) for item in groups] == [
        (case.id, (side,)) for case in plan.cases for side in (case.rollout, case.training)
    ]
    assert [item.engine.role for item in alone(plan.runnable, registry(), Role.TRAINING)] == [Role.TRAINING] * 2
    source = world.plan((world.side("rollout"), world.side("training")), sample=True).experiment.tokens.sample
    sampled = with_sampler(groups, world.side("rollout"), source, registry())
    assert (sampled[0].sides, sampled[0].sample, sampled[1:]) == ((), source, groups)


def test_what_a_former_stage_executed_is_not_executed_again(world, registry):
    plan = plan_of(world)
    first = world.plan((plan.cases[0].rollout, plan.cases[0].training))
    early = world.run(first, share=False)
    assert early.engines.constructed == 2 and set(early.alone) == {plan.cases[0].id}
    options = RunOptions(jobs=1, share=False)
    late = execute(plan, registry(), world.out, options, former=early)
    # the batch size is a request-time value: both cases have the same two engine configurations
    assert (late.engines.distinct, late.engines.constructed, late.engines.reused_from_disk) == (2, 2, 0)
    attempts = {
        case: {run.config.role.value: run.attempt for run in runs.values()} for case, runs in late.alone.items()
    }
    assert attempts == {
        plan.cases[0].id: {"rollout": 1, "training": 1},
        plan.cases[1].id: {"rollout": 1, "training": 2},
    }


def test_one_failing_side_costs_its_case_alone(world):
    training = world.side("training")
    plan = world.plan((world.side("rollout"), training), (world.side("rollout", "fake_score_crash"), training))
    events = []
    report = world.run(plan, share=False, on_event=events.append, jobs=2)
    statuses = {
        case: sorted(run.failure.status if run.failure else "sealed" for run in runs.values())
        for case, runs in report.alone.items()
    }
    assert statuses == {plan.cases[0].id: ["sealed", "sealed"], plan.cases[1].id: ["scorer_error", "sealed"]}
    assert [event.kind for event in events].count("case_executed") == 2
