import pytest
from attrs import evolve

from xcfg.errors import InvalidInput, PluginError
from xcfg.model.experiment import SampleSource
from xcfg.model.kernel import OperatorChoice
from xcfg.model.scorer import Launch
from xcfg.runner.schedule import group, remaining, side_configs, with_sampler
from xcfg.runner.specify import world_size


def test_rejected_cases_need_no_engine(world, registry):
    from xcfg.model.case import Rejection

    plan = world.plan((world.side("rollout"), world.side("training")), (world.side("rollout", batch__size=2),) * 2)
    cases = (plan.cases[0], evolve(plan.cases[1], rejected=Rejection(kind="veto", reason="no")))
    assert side_configs(evolve(plan, cases=cases)) == (world.side("rollout"), world.side("training"))


def test_request_values_and_request_operators_share_an_engine(world, registry):
    choice = {"selected_logprob": OperatorChoice(backend="fake_coarse")}
    sides = [
        world.side("rollout", batch__size=1),
        world.side("rollout", batch__size=2, operators=choice),
        world.side("rollout", rollout__dtype="float32"),
        world.side("rollout", checkpoint="other"),
        world.side("rollout", "fake_kernel"),
        world.side("training"),
    ]
    groups = group(sides, registry())
    assert [len(item.sides) for item in groups] == [2, 1, 1, 1, 1]


def test_threads_take_effect_at_process_start(world, registry):
    sides = [world.side("rollout", execution__threads=count) for count in (1, 2)]
    assert len(group(sides, registry())) == 2


def test_a_knob_without_materializer_is_a_plugin_error(world, registry):
    with pytest.raises(PluginError, match=r"vllm\.block_size"):
        group([world.side("rollout", vllm__block_size=16)], registry())


def test_the_sampler_goes_first_and_shares_its_engine(world, registry):
    source = SampleSource(prompts="prompts.jsonl")
    training, rollout = world.side("training"), world.side("rollout", batch__size=4)
    groups = with_sampler(group([training, rollout], registry()), world.side("rollout"), source, registry())
    assert [(item.sides, item.sample) for item in groups] == [((rollout,), source), ((training,), None)]
    alone = with_sampler(group([training], registry()), rollout, source, registry())
    assert [item.sides for item in alone] == [(), (training,)]


def test_a_group_with_nothing_left_is_gone(world, registry):
    sides = [world.side("rollout", batch__size=size) for size in (1, 2)]
    groups = group([*sides, world.side("training")], registry())
    left = remaining(groups, lambda side: side != sides[1])
    assert [(item.engine, item.sides) for item in left] == [(sides[1], (sides[1],))]


def test_an_elastic_scorer_needs_a_number_of_ranks(world, registry):
    elastic = registry().scorer("Elastic")
    assert elastic.launch is Launch.ELASTIC
    assert world_size(world.side("training", "Elastic", training__world_size=2), elastic) == 2
    assert world_size(world.side("training"), registry().scorer("fake")) == 1
    with pytest.raises(InvalidInput, match="number of ranks"):
        world_size(world.side("training", "Elastic"), elastic)
