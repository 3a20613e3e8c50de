"""``xcfg run --only``: the side runs of one side, completed by a later run."""

import pytest

AXES = {"rollout.dtype": ["bfloat16", "float32"]}


def run(xcfg, experiment, *extra):
    return xcfg("-q", "run", experiment, "--allow-fake", "--out", experiment.parent / "out", "--json", *extra)


def test_each_side_alone_and_then_judged(xcfg, write):
    experiment = write(axes=AXES, cases=[], slices={})
    out = experiment.parent / "out"
    early = run(xcfg, experiment, "--only", "training")
    assert early.code == 2 and "--only rollout" in early.out and not (out / "run.json").exists()

    first = run(xcfg, experiment, "--only", "rollout")
    assert (first.code, first.document["status"]) == (0, "sealed")
    assert first.document["counts"] == {"not_run": 2} and first.document["cases"] == []
    assert first.document["engines"] == {"distinct": 2, "constructed": 2, "reused_from_disk": 0}
    sides = {"role": "rollout", "planned": 2, "sealed": 2, "reused": 0, "failed": []}
    assert first.document["sides"] == sides
    report = xcfg("report", out, "--json")
    assert (report.code, report.document["counts"]) == (5, {"not_run": 2})
    rows = xcfg("cube", "query", out, "--json").document["rows"]
    assert [row["status"] for row in rows] == ["not_run"] * 2

    second = run(xcfg, experiment, "--only", "training")
    assert (second.code, second.document["status"], second.document["counts"]) == (0, "pass", {"pass": 2})
    assert second.document["engines"]["constructed"] == 1
    whole = run(xcfg, experiment)
    assert (whole.document["engines"]["constructed"], whole.document["counts"]) == (0, {"pass": 2})


@pytest.mark.parametrize("side", ["rollout", "training"])
def test_a_failing_side_fails_the_run_and_names_itself(xcfg, write, side):
    tokens = {"recorded": "tokens.jsonl"}
    experiment = write(axes={}, cases=[], slices={}, tokens=tokens, **{side: {"scorer": "fake_score_crash"}})
    (experiment.parent / "tokens.jsonl").write_text('{"id": "a", "prompt_ids": [1, 2], "response_ids": [3, 4, 5]}\n')
    done = run(xcfg, experiment, "--only", side)
    assert (done.code, done.document["status"]) == (7, "scorer_error")
    (failed,) = done.document["sides"]["failed"]
    assert failed["status"] == "scorer_error" and "cannot score" in failed["reason"]
    shown = xcfg("run", experiment, "--allow-fake", "--out", experiment.parent / "out", "--only", side)
    assert shown.code == 7 and f"{side} side runs: 0 sealed, 0 reused from disk, 1 failed of 1" in shown.out


def test_the_option_by_its_variable(xcfg, write, monkeypatch):
    monkeypatch.setenv("XCFG_RUN_ONLY", "rollout")
    experiment = write(axes={}, cases=[], slices={})
    assert run(xcfg, experiment).document["sides"]["role"] == "rollout"
    monkeypatch.setenv("XCFG_RUN_ONLY", "both")
    assert run(xcfg, experiment).code == 2
