"""``xcfg cube merge``: results of several folders in one, nothing overwritten, nothing half-written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from xcfg.runner import copies


def rows(xcfg, folder):
    found = xcfg("cube", "query", folder, "--json").document["rows"]
    return {row["case_id"]: row for row in found}


def attempts(folder):
    return sorted(path.parent.relative_to(folder).as_posix() for path in folder.glob("sides/*/*/COMPLETE"))


def test_both_folders_cases_stand_in_one_cube(finished, copied, xcfg, content_of):
    batch, dtype = copied("batch"), finished / "dtype"
    before, untouched = content_of(batch), content_of(dtype)
    done = xcfg("cube", "merge", batch, dtype, "--json")
    assert done.code == 0, done.err
    # the other folder has three sides, two rollouts and one training; all three were executed anew there
    assert (len(done.document["taken"]), done.document["present"], done.document["cases"]) == (3, 0, 1)
    merged, one, two = rows(xcfg, batch), rows(xcfg, finished / "batch"), rows(xcfg, dtype)
    assert merged.keys() == one.keys() | two.keys() and len(merged) == 3
    for case, row in merged.items():
        for name, value in (one.get(case) or two[case]).items():
            assert row[name] == value, (case, name)
    kept = {name: data for name, data in before.items() if name.startswith(("sides/", "launches/", "tokens/"))}
    after = content_of(batch)
    assert {name: after[name] for name in kept} == kept
    assert content_of(dtype) == untouched
    assert xcfg("cube", "verify", batch).code == 0
    assert len(list(batch.glob("cases/*/comparison.json"))) == 3


def test_a_side_of_both_becomes_the_next_attempt_and_keeps_its_launch(finished, copied, xcfg):
    batch, dtype = copied("batch"), finished / "dtype"
    shared = {path.name for path in batch.glob("sides/*")} & {path.name for path in dtype.glob("sides/*")}
    assert len(shared) == 2  # rollout and training of the baseline
    assert xcfg("cube", "merge", batch, dtype).code == 0
    for side in shared:
        new, old = batch / "sides" / side / "attempt-0002", dtype / "sides" / side / "attempt-0001"
        assert (new / "samples.safetensors").read_bytes() == (old / "samples.safetensors").read_bytes()
        launch = json.loads((new / "environment.json").read_bytes())["launch"]
        theirs = json.loads((old / "environment.json").read_bytes())["launch"]
        origin = json.loads((batch / "launches" / launch / "origin.json").read_bytes())
        assert (origin["folder"], origin["launch"]) == (str(dtype), theirs)
        ended = (batch / "launches" / launch / "exit.json").read_bytes()
        assert ended == (dtype / "launches" / theirs / "exit.json").read_bytes()


def test_merging_again_changes_nothing(finished, copied, xcfg, content_of):
    batch = copied("batch")
    xcfg("cube", "merge", batch, finished / "dtype")
    before = content_of(batch)
    assert json.loads(before["plan.json"])["dimensions"] == ["batch.size", "rollout.dtype"]
    again = xcfg("cube", "merge", batch, finished / "dtype", finished / "batch", "--json")
    assert (again.code, again.document["taken"], again.document["present"], again.document["cases"]) == (0, [], 7, 0)
    assert content_of(batch) == before


def test_a_resumed_run_takes_what_was_merged(finished, copied, xcfg):
    """The attempts of another folder count as executed."""
    batch = copied("batch")
    xcfg("cube", "merge", batch, finished / "dtype")
    done = xcfg("-q", "run", finished / "dtype.json", "--allow-fake", "--out", batch, "--json").document
    assert done["engines"]["constructed"] == 0


def test_another_experiment_is_refused_by_name_and_nothing_is_written(finished, copied, xcfg, content_of):
    batch = copied("batch")
    before = content_of(batch)
    done = xcfg("cube", "merge", batch, finished / "dtype", finished / "other", "--json")
    assert done.code == 2
    message = done.document["errors"][0]["message"]
    assert str(finished / "other") in message and "tokens.sample.max_new_tokens is 3, not 6" not in message
    assert "max_new_tokens" in message
    assert content_of(batch) == before


def test_another_token_batch_is_refused_by_name(finished, copied, xcfg, content_of):
    """The same source may have sampled other tokens on another machine."""
    batch, dtype = copied("batch"), copied("dtype")
    other = copied("other")
    shutil.rmtree(dtype / "tokens")
    shutil.copytree(other / "tokens", dtype / "tokens")
    before = content_of(batch)
    done = xcfg("cube", "merge", batch, dtype, "--json")
    assert done.code == 2 and "token batch" in done.document["errors"][0]["message"]
    assert content_of(batch) == before


def test_a_damaged_attempt_is_left_out_and_named(finished, copied, xcfg):
    batch, dtype = copied("batch"), copied("dtype")
    spoilt = sorted(dtype.glob("sides/*/attempt-0001/samples.safetensors"))[0]
    spoilt.write_bytes(b"0" + spoilt.read_bytes()[1:])
    done = xcfg("cube", "merge", batch, dtype, "--json")
    assert done.code == 6
    assert len(done.document["taken"]) == 2
    assert [item["path"] for item in done.document["refused"]] == [str(spoilt.parent)]
    assert xcfg("cube", "verify", batch).code == 0


def test_a_damaged_attempt_here_is_mended_by_a_sound_one(finished, copied, xcfg):
    batch = copied("batch")
    spoilt = sorted(batch.glob("sides/*/attempt-0001/samples.safetensors"))[0]
    spoilt.write_bytes(b"0" + spoilt.read_bytes()[1:])
    done = xcfg("cube", "merge", batch, finished / "batch", "--json")
    assert done.document["taken"] == [f"{spoilt.parent.parent.name}/attempt-0002"]
    assert rows(xcfg, batch) == rows(xcfg, finished / "batch")


@pytest.mark.parametrize("wrong", ["no run", "itself"])
def test_what_cannot_be_merged(finished, copied, xcfg, tmp_path, wrong):
    batch = copied("batch")
    assert xcfg("cube", "merge", batch, tmp_path if wrong == "no run" else batch).code == 2


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_killed_merge_leaves_whole_attempts_and_goes_on(finished, copied, xcfg, monkeypatch, after):
    class Killed(BaseException):
        pass

    batch, done = copied("batch"), 0
    original = copies.seal

    def kill(folder: Path, subject: str) -> None:
        nonlocal done
        done += 1
        if done > after:
            raise Killed
        original(folder, subject)

    monkeypatch.setattr(copies, "seal", kill)
    monkeypatch.setattr(copies.shutil, "rmtree", lambda *_args, **_options: None)  # a killed process tidies nothing
    assert xcfg("cube", "merge", batch, finished / "dtype").code == 3
    monkeypatch.undo()
    assert len(attempts(batch)) == 4 + after
    assert len([path for path in batch.glob("sides/*/*") if path.name.startswith("attempt-")]) == 4 + after

    assert len(xcfg("cube", "merge", batch, finished / "dtype", "--json").document["taken"]) == 3 - after
    assert xcfg("cube", "compact", batch).code == 0
    assert not list(batch.glob("sides/*/.copy-*"))
    assert xcfg("cube", "verify", batch).code == 0
    assert len(rows(xcfg, batch)) == 3
