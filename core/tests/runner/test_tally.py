from types import SimpleNamespace

from xcfg.runner.events import CaseExecuted, SideSealed
from xcfg.runner.tally import Tally, Teller


def cases_of(world):
    one, two, training = world.side("rollout"), world.side("rollout", batch__size=2), world.side("training")
    cases = [SimpleNamespace(id=name, rollout=side, training=training) for name, side in (("a", one), ("b", two))]
    return cases, one, two, training


def test_a_case_is_executed_with_the_later_of_its_sides(world):
    cases, one, two, training = cases_of(world)
    tally = Tally.of(cases)
    assert tally.ended(one) == ()
    assert tally.ended(training) == (CaseExecuted(case="a", number=1, total=2),)
    assert tally.ended(training) == ()
    assert tally.ended(two) == (CaseExecuted(case="b", number=2, total=2),)


def test_a_side_run_of_one_case_completes_that_case_alone(world):
    cases, one, two, training = cases_of(world)
    told = []
    teller = Teller(told.append, Tally.of(cases), share=False)
    teller.emit(SideSealed(config=training, side_id="s", attempt=1))
    teller.ended(training, "b")
    teller.ended(one, "a")
    assert [event.kind for event in told] == ["side_sealed"]
    teller.ended(two, "b")
    assert told[1:] == [CaseExecuted(case="b", number=1, total=2)]


def test_with_sharing_a_seal_completes_at_once(world):
    cases, one, _, training = cases_of(world)
    told = []
    teller = Teller(told.append, Tally.of(cases), share=True)
    for config in (one, training):
        teller.emit(SideSealed(config=config, side_id="s", attempt=1))
    teller.ended(training)
    assert [event.kind for event in told] == ["side_sealed", "side_sealed", "case_executed"]
