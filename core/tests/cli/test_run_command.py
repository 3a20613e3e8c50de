"""``xcfg run`` from end to end on fake scorers: documents, exit codes, resume."""

import json
import math
import shutil
from pathlib import Path

import pytest
import zarr


def run(xcfg, experiment: Path, *extra: object):
    return xcfg("-q", "run", experiment, "--allow-fake", "--out", experiment.parent / "out", "--json", *extra)


def test_document_has_every_promised_field(xcfg, write) -> None:
    done = run(xcfg, write())
    assert done.code == 0
    document = done.document
    assert document["schema"] == "xcfg.run/1" and document["status"] == "pass"
    assert document["fake"] is True
    assert document["counts"] == {"pass": 4}
    assert document["engines"] == {"distinct": 4, "constructed": 4, "reused_from_disk": 0}
    assert document["wall_s"] > 0 and document["engine_s"] > 0
    for case in document["cases"]:
        assert {"id", "status", "within_baseline_row", "reason", "axes", "dtype", "threshold"} <= set(case)
        assert case["active_tokens"] == 4 * 6
        assert case["worst"]["sequence"] in {"p0", "p1", "p2", "p3"}
        for knob in case["knobs"].values():
            assert {"requested", "materialized", "observed"} <= set(knob)


def test_metrics_follow_from_the_stored_tokens(xcfg, write) -> None:
    experiment = write()
    cases = {case["id"]: case for case in run(xcfg, experiment).document["cases"]}
    cube = zarr.open_group(experiment.parent / "out/cube.zarr", mode="r")
    starts, counts = cube["token_start"][:], cube["token_count"][:]
    for row, name in enumerate(cube["case"][:]):
        part = slice(int(starts[row]), int(starts[row]) + int(counts[row]))
        pairs = zip(cube["token_rollout_logp"][part], cube["token_train_logp"][part], strict=True)
        drift = [float(train) - float(rollout) for rollout, train in pairs]
        metrics = cases[str(name)]["metrics"]
        assert metrics["max_abs_dlogp"] == max(map(abs, drift))
        assert metrics["mean_abs_dlogp"] == pytest.approx(math.fsum(map(abs, drift)) / len(drift), rel=1e-12)


def test_a_second_run_constructs_nothing(xcfg, write) -> None:
    experiment = write()
    first = run(xcfg, experiment).document
    second = run(xcfg, experiment).document
    assert second["engines"] == {"distinct": 4, "constructed": 0, "reused_from_disk": 4}
    assert [case["metrics"] for case in second["cases"]] == [case["metrics"] for case in first["cases"]]


def test_a_broken_seal_runs_that_side_alone(xcfg, write) -> None:
    experiment = write()
    run(xcfg, experiment)
    sides = sorted((experiment.parent / "out/sides").iterdir())
    (sides[0] / "attempt-0001/COMPLETE").unlink()
    again = run(xcfg, experiment).document
    assert again["engines"]["constructed"] == 1
    assert (sides[0] / "attempt-0002/COMPLETE").is_file()
    assert not any((side / "attempt-0002").exists() for side in sides[1:])


def test_drift_exits_1(xcfg, write) -> None:
    experiment = write(checkpoint={"path": "model"}, training={"scorer": "fake_off_by_one"})
    done = run(xcfg, experiment)
    assert done.code == 1
    assert done.document["status"] == "fail"
    assert "off_by_one_shift" in [item["rule"] for item in done.document["cases"][0]["findings"]]


@pytest.mark.parametrize(
    ("scorer", "status", "code"),
    [
        ("fake_open_crash", "launch_error", 7),
        ("fake_score_crash", "scorer_error", 7),
        ("fake_killed", "scorer_error", 7),
        ("fake_nan", "non_finite", 6),
        ("fake_state_changed", "invalid_identity", 6),
        ("fake_mask_ignored", "invalid_identity", 6),
        ("fake_dropped_rank", "invalid_artifact", 6),
        ("fake_unobserved", "invalid_provenance", 6),
    ],
)
def test_each_failure_has_its_status_and_exit_code(xcfg, write, scorer: str, status: str, code: int) -> None:
    masks = {"tokens": {"recorded": "tokens.jsonl"}} if scorer == "fake_mask_ignored" else {}
    experiment = write(axes={}, cases=[], slices={}, training={"scorer": scorer}, **masks)
    record = '{"id": "a", "prompt_ids": [1, 2], "response_ids": [3, 4, 5], "mask": [true, false, true]}\n'
    (experiment.parent / "tokens.jsonl").write_text(record)
    done = run(xcfg, experiment)
    assert (done.document["status"], done.code) == (status, code)
    assert done.document["cases"][0]["status"] == status
    assert done.document["cases"][0]["reason"]


def test_a_hanging_side_times_out_and_the_other_side_is_kept(xcfg, write) -> None:
    experiment = write(axes={}, cases=[], slices={}, training={"scorer": "fake_hang"})
    done = run(xcfg, experiment, "--timeout", "6")
    assert (done.document["status"], done.code) == ("timeout", 7)
    assert len(list((experiment.parent / "out/sides").glob("*/attempt-0001/COMPLETE"))) == 1


def test_a_folder_of_another_experiment_is_refused_untouched(xcfg, write) -> None:
    experiment = write(axes={}, cases=[], slices={})
    run(xcfg, experiment)
    (experiment.parent / "model/config.json").write_text('{"vocab_size": 65}')
    before = {path: path.stat().st_mtime_ns for path in (experiment.parent / "out").rglob("*")}
    done = run(xcfg, experiment)
    assert done.code == 2 and "checkpoint" in done.out
    assert {path: path.stat().st_mtime_ns for path in (experiment.parent / "out").rglob("*")} == before


def test_a_folder_with_other_files_is_refused_untouched(xcfg, write, tmp_path: Path) -> None:
    experiment = write()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("mine")
    assert run(xcfg, experiment).code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_a_slice_runs_its_cases_and_the_rest_joins_later(xcfg, write) -> None:
    experiment = write()
    assert [case["name"] for case in run(xcfg, experiment, "--slice", "fp32").document["cases"]] == ["fp32-both"]
    whole = run(xcfg, experiment).document
    assert len(whole["cases"]) == 4
    assert whole["engines"]["reused_from_disk"] == 2


def test_everything_unsupported_exits_8(xcfg, write) -> None:
    case = {"name": "tp3", "set": {"training.world_size": 3}}
    experiment = write(axes={}, cases=[case], slices={"tp3": {"cases": ["tp3"]}}, training={"scorer": "torch"})
    pytest.importorskip("xcfg_torch", reason="needs a scorer with a limited knob")
    done = run(xcfg, experiment, "--slice", "tp3")
    assert (done.document["status"], done.code) == ("unsupported", 8)


def test_show_report_query_and_rebuild_read_the_folder_alone(xcfg, write) -> None:
    experiment = write()
    out = experiment.parent / "out"
    ran = run(xcfg, experiment).document
    shutil.rmtree(experiment.parent / "model")
    shown = xcfg("show", out, "fp32-both", "--tokens", 3, "--json").document
    assert shown["case"]["metrics"] == next(c for c in ran["cases"] if c["name"] == "fp32-both")["metrics"]
    assert len(shown["tokens"]) == 3
    assert xcfg("report", out, "--json").document["counts"] == ran["counts"]
    rows = xcfg("cube", "query", out, "--where", "rollout.dtype == float32", "--json").document["rows"]
    assert {row["rollout.dtype"] for row in rows} == {"float32"} and len(rows) == 2
    assert xcfg("cube", "rebuild", out, "--json").code == 0
    assert xcfg("cube", "query", out, "--where", "max_abs_dlogp > 1000").code == 5


def test_a_later_slice_and_an_added_axis_lose_nothing(xcfg, write) -> None:
    experiment = write()
    out = experiment.parent / "out"
    run(xcfg, experiment)
    run(xcfg, experiment, "--slice", "fp32")
    assert len(xcfg("report", out, "--json").document["cases"]) == 4
    axes = {"rollout.dtype": ["bfloat16", "float32"], "layout.padding_side": ["right", "left"]}
    assert run(xcfg, write_again(experiment, axes)).code == 0
    rows = xcfg("cube", "query", out, "--json").document["rows"]
    assert len(rows) == 5 and all(row["status"] == "pass" for row in rows)
    assert {(row["batch.size"], row["layout.padding_side"]) for row in rows} == {
        (8, "right"),
        (1, "right"),
        (8, "left"),
    }


def test_a_slice_is_read_against_the_row_of_a_baseline_that_ran_before(xcfg, write) -> None:
    experiment = write()
    (alone,) = run(xcfg, experiment, "--slice", "fp32").document["cases"]
    assert alone["within_baseline_row"] is None
    run(xcfg, experiment)
    done = run(xcfg, experiment, "--slice", "fp32").document
    assert done["engines"]["constructed"] == 0
    assert (done["cases"][0]["baseline_dtype"], done["cases"][0]["within_baseline_row"]) == ("bfloat16", True)


def write_again(experiment: Path, axes: dict) -> Path:
    content = json.loads(experiment.read_text())
    experiment.write_text(json.dumps({**content, "axes": axes}))
    return experiment


@pytest.mark.parametrize("scorer", ["fake_mask_ignored", "fake_prompt_in_mask"])
def test_two_sides_wrong_in_the_same_way_are_no_pass(xcfg, write, scorer: str) -> None:
    sides = {"rollout": {"scorer": scorer}, "training": {"scorer": scorer}}
    experiment = write(axes={}, cases=[], slices={}, tokens={"recorded": "tokens.jsonl"}, **sides)
    record = '{"id": "a", "prompt_ids": [1, 2], "response_ids": [3, 4, 5], "mask": [true, false, true]}\n'
    (experiment.parent / "tokens.jsonl").write_text(record)
    done = run(xcfg, experiment)
    assert (done.document["status"], done.code) == ("invalid_identity", 6)
