import json

from xcfg.model.scorer import Role
from xcfg.runner.store import Store
from xcfg.runner.timings import EngineTime, Timings, makespan, measured


def test_engines_in_their_order_on_so_many_workers():
    assert makespan([], 2) == 0.0
    assert makespan([3.0, 1.0, 1.0], 1) == 5.0
    # the second worker takes both short ones
    assert makespan([3.0, 1.0, 1.0], 2) == 3.0
    assert makespan([3.0, None], 2) is None


def test_an_estimate_is_the_medians_of_the_same_scorer_in_the_same_role():
    times = [(4.0, (1.0, 9.0)), (6.0, (2.0,)), (50.0, ())]
    timings = Timings(
        engines=[EngineTime(role=Role.ROLLOUT, scorer="a", start_s=start, score_s=score) for start, score in times]
    )
    assert timings.estimate(Role.ROLLOUT, "a", 3) == 6.0 + 3 * 2.0
    assert timings.estimate(Role.ROLLOUT, "a", 0) == 6.0
    assert timings.estimate(Role.TRAINING, "a", 1) is None
    assert timings.estimate(Role.ROLLOUT, "b", 1) is None
    only_start = Timings(engines=[EngineTime(role=Role.ROLLOUT, scorer="a", start_s=1.0, score_s=())])
    assert only_start.estimate(Role.ROLLOUT, "a", 1) is None


def attempt(store, side, launch, phases):
    path = store.side(side) / "attempt-0001"
    path.mkdir(parents=True)
    content = {
        "requested": {"side": {"role": "rollout", "scorer": "a"}},
        "environment": {"launch": launch},
        "timing": {"phases": phases},
    }
    for name, value in content.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    (path / "COMPLETE").touch()
    return path


def launch(store, name, **end):
    store.launch(name).mkdir(parents=True)
    (store.launch(name) / "exit.json").write_text(json.dumps(end))


def test_a_folder_measures_by_the_launches_that_ended_well(tmp_path):
    store = Store(tmp_path)
    assert measured(store) == Timings()
    attempt(store, "0" * 16, "0001", {"open": 5.0, "sample": 2.0, "score": 1.0})
    attempt(store, "1" * 16, "0001", {"score": 3.0})
    launch(store, "0001", seconds=12.0, complete=True, code=0, ending="exited")
    attempt(store, "2" * 16, "0002", {"score": 100.0})
    launch(store, "0002", seconds=900.0, complete=False, code=1, ending="exited")
    attempt(store, "3" * 16, "0003", {"score": 100.0})  # its launch is still at work, or its parent died
    attempt(store, "4" * 16, "0001", {"score": 100.0}).joinpath("COMPLETE").unlink()
    assert measured(store).engines == (EngineTime(role=Role.ROLLOUT, scorer="a", start_s=6.0, score_s=(1.0, 3.0)),)


def test_a_run_measures_itself(finished):
    world, _, report = finished
    found = measured(Store(world.out)).engines
    assert sorted((item.role.value, len(item.score_s)) for item in found) == [
        ("rollout", 2),
        ("rollout", 2),
        ("training", 1),
    ]
    assert 0 < sum(item.start_s + sum(item.score_s) for item in found) <= report.engine_s * 1.001
