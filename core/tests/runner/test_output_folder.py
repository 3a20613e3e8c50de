import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import evolve

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.runner.artifacts import load_plan, load_run
from xcfg.runner.binding import check
from xcfg.runner.lock import locked
from xcfg.runner.store import Store


def _alone(world, **knobs):
    side = world.side("rollout", **knobs)
    return world.plan((side, side))


def _tree(folder):
    return {path: (path.read_bytes() if path.is_file() else None) for path in sorted(folder.rglob("*"))}


def test_a_folder_with_foreign_content_is_refused_untouched(world):
    world.out.mkdir()
    (world.out / "thesis.tex").write_text("mine")
    before = _tree(world.root)
    with pytest.raises(InvalidInput, match=r"thesis\.tex"):
        world.run(_alone(world))
    assert _tree(world.root) == before


def test_a_file_in_place_of_the_folder_is_refused(world):
    world.out.write_text("mine")
    with pytest.raises(InvalidInput, match="is a file"):
        world.run(_alone(world))


def test_a_folder_of_another_experiment_is_refused_untouched(finished):
    world, plan, _ = finished
    world = world.copy("bound")
    before = _tree(world.out)
    with pytest.raises(InvalidInput, match=r"its tokens\.sha256 is nothing, not 1{64}"):
        world.run(evolve(plan, tokens={**plan.tokens, "sha256": "1" * 64}))
    with pytest.raises(InvalidInput, match=r"its tokens\.\S+ is \S+, not nothing"):
        world.run(evolve(plan, tokens={}))
    elsewhere = evolve(plan.experiment, checkpoint=evolve(plan.experiment.checkpoint, path="other"))
    with pytest.raises(InvalidInput, match="its checkpoint is"):
        world.run(evolve(plan, experiment=elsewhere))
    assert _tree(world.out) == before


def test_an_added_axis_value_appends(finished):
    world, plan, _ = finished
    known = plan.cases[0].rollout
    added = evolve(known, knobs={**known.knobs, "batch.size": 7})
    report = world.copy("appended").run(world.plan((known, added)))
    assert {run.config.knobs["batch.size"]: run.reused for run in report.sides.values()} == {1: True, 7: False}


def test_a_second_run_is_refused_by_name_of_the_first(finished):
    world, plan, _ = finished
    world = world.copy("locked")
    before = _tree(world.out)
    with locked(world.out), ThreadPoolExecutor() as other, pytest.raises(InvalidInput) as refused:
        other.submit(world.run, plan).result()
    assert f"process {os.getpid()} on {socket.gethostname()}" in str(refused.value)
    assert _tree(world.out) == before


def test_whoever_holds_a_folder_runs_in_it_and_keeps_it(finished):
    world, plan, _ = finished
    world = world.copy("held")
    with locked(world.out):
        assert all(run.reused for run in world.run(plan).sides.values())
        assert (world.out / ".lock-holder.json").is_file()
        with ThreadPoolExecutor() as other, pytest.raises(InvalidInput, match="another run is writing here"):
            other.submit(world.run, plan).result()
    assert not (world.out / ".lock-holder.json").exists()


def test_a_lock_left_by_a_killed_run_is_not_foreign(world):
    with locked(world.out):
        pass
    check(Store(world.out), None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokens.jsonl", "", "no record"),
        ("tokens.jsonl", '{"id": "a", "prompt_ids": [1], "response_ids": [2], "mask": [true, false]}', "2 mask values"),
        ("tokens.jsonl", '{"id": "a", "prompt_ids": [], "response_ids": [2]}', "prompt_ids is empty"),
    ],
)
def test_wrong_tokens_touch_nothing(world, name, content, message):
    (world.root / name).write_text(content)
    with pytest.raises(InvalidInput, match=message):
        world.run(_alone(world))
    assert not world.out.exists()


def test_a_missing_checkpoint_touches_nothing(world):
    side = world.side("rollout", checkpoint="absent")
    with pytest.raises(InvalidInput, match="absent"):
        world.run(world.plan((side, side)))
    assert not world.out.exists()


def test_a_damaged_token_batch_is_never_sampled_again(finished):
    world, plan, _ = finished
    world = world.copy("damaged")
    path = world.out / "tokens" / "batch.jsonl"
    path.write_text(path.read_text().replace("[4, 5]", "[4, 6]"))
    with pytest.raises(ArtifactError, match=r"batch\.jsonl"):
        world.run(plan)
    with pytest.raises(ArtifactError, match=r"batch\.jsonl"):
        load_run(world.out, plan)


def test_the_plan_is_read_back(finished):
    world, plan, _ = finished
    assert load_plan(world.out) == plan
    with pytest.raises(InvalidInput, match="holds no run"):
        load_plan(world.root)


def test_an_attempt_that_was_cut_off_counts_as_not_made(finished):
    world, plan, report = finished
    world = world.copy("cut")
    cut = next(iter(report.sides.values()))
    (world.out / "sides" / cut.side_id / "attempt-0001" / "COMPLETE").unlink()
    assert set(report.sides) - set(load_run(world.out, plan).sides) == {cut.config.digest()}
