"""``xcfg cube verify``: what holds passes, and each thing that was damaged is named."""

from __future__ import annotations

import json
import shutil

import pytest


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def attempt(folder):
    return sorted(folder.glob("sides/*/attempt-0001"))[0]


def test_an_untouched_folder_holds_and_is_not_changed(finished, xcfg, content_of):
    before = content_of(finished / "batch")
    done = xcfg("cube", "verify", finished / "batch", "--json")
    assert done.code == 0, done.err
    found = done.document
    assert (found["schema"], found["status"], found["cube"], found["problems"]) == (
        "xcfg.cube.verify/1",
        "pass",
        "same",
        [],
    )
    # rollout and training, each at two batch sizes
    payloads = sum(len(json.loads(path.read_bytes())["files"]) for path in finished.glob("batch/sides/*/*/COMPLETE"))
    assert found["counts"] == {
        "attempts": 4, "payloads": payloads, "failures": 0, "unfinished": 0, "cases": 2, "problems": 0,
    }  # fmt: skip
    assert content_of(finished / "batch") == before
    assert "everything holds" in xcfg("cube", "verify", finished / "batch").out


DAMAGE = {
    "a flipped bit": (lambda at: flip(at / "samples.safetensors"), "samples.safetensors", "not what was sealed"),
    "cut short": (lambda at: (at / "timing.json").write_bytes(b""), "timing.json", "not what was sealed"),
    "removed": (lambda at: (at / "ranks.json").unlink(), "ranks.json", "missing"),
    "added": (lambda at: (at / "more.json").write_text("{}"), "more.json", "added"),
    "a broken seal": (lambda at: (at / "COMPLETE").write_text("{"), "COMPLETE", "unreadable"),
    "a seal of another": (lambda at: at.rename(at.with_name("attempt-0007")), "COMPLETE", "attempt-0001"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_each_damage_of_an_attempt_is_named(copied, xcfg, damage):
    folder = copied("batch")
    spoil, name, message = DAMAGE[damage]
    spoil(attempt(folder))
    done = xcfg("cube", "verify", folder, "--json")
    assert done.code == 6
    found = done.document
    assert found["status"] == "invalid_artifact"
    sealed = [item for item in found["problems"] if item["path"].startswith("sides/")]
    assert [item["path"].rsplit("/", 1)[1] for item in sealed] == [name]
    assert message in sealed[0]["message"]
    # the verdict that stands in the cube no longer follows from the attempts
    assert found["cube"] == "differs"


def test_every_damaged_payload_is_named_not_the_first_alone(copied, xcfg):
    folder = copied("batch")
    one, two = sorted(folder.glob("sides/*/attempt-0001"))[:2]
    for path in (one / "samples.safetensors", one / "timing.json", two / "observed.json"):
        flip(path)
    problems = xcfg("cube", "verify", folder, "--json").document["problems"]
    wanted = {f"{one.parent.name}/attempt-0001/{name}" for name in ("samples.safetensors", "timing.json")}
    wanted.add(f"{two.parent.name}/attempt-0001/observed.json")
    assert {item["path"].removeprefix("sides/") for item in problems if item["path"].startswith("sides/")} == wanted


@pytest.mark.parametrize("name", ["plan.json", "run.json", "tokens/batch.jsonl", "tokens/COMPLETE"])
def test_a_damaged_document_is_named_and_nothing_is_judged_by_it(copied, xcfg, name):
    folder = copied("batch")
    (folder / name).write_bytes((folder / name).read_bytes()[:40])
    done = xcfg("cube", "verify", folder, "--json")
    assert done.code == 6
    assert done.document["cube"] == "not_compared"
    assert [item["path"] for item in done.document["problems"]] == [name]


def test_a_changed_cube_is_named_by_its_file(copied, xcfg):
    folder = copied("batch")
    chunk = sorted((folder / "cube.zarr/metrics").glob("c.*"))[0]
    shutil.copy(sorted((folder / "cube.zarr/threshold").glob("c.*"))[0], chunk)
    done = xcfg("cube", "verify", folder, "--json")
    assert done.code == 6
    assert [item["path"] for item in done.document["problems"]] == [f"cube.zarr/metrics/{chunk.name}"]
    assert xcfg("cube", "rebuild", folder).code == 0
    assert xcfg("cube", "verify", folder).code == 0
    flip(sorted((folder / "cube.zarr/measured/cost").glob("c.*"))[0])
    assert "damaged" in xcfg("cube", "verify", folder).out
    shutil.rmtree(folder / "cube.zarr")
    missing = xcfg("cube", "verify", folder, "--json")
    assert (missing.code, missing.document["cube"]) == (6, "missing")


def test_an_attempt_that_is_gone_shows_in_the_cube(copied, xcfg):
    folder = copied("batch")
    shutil.rmtree(attempt(folder).parent)
    done = xcfg("cube", "verify", folder, "--json")
    assert (done.code, done.document["cube"], done.document["counts"]["attempts"]) == (6, "differs", 3)


def test_a_folder_that_is_no_run_is_a_usage_error(tmp_path, xcfg):
    assert xcfg("cube", "verify", tmp_path).code == 2
    assert xcfg("cube", "verify", tmp_path / "none").code == 2


def test_installed_plugins_are_no_part_of_the_claim(copied, xcfg):
    """The versions in the cube are those of the run; another machine has others."""
    folder = copied("batch")
    text = (folder / "cube.zarr/zarr.json").read_text()
    found = json.loads(text)
    found["attributes"]["plugins"] = {"xcfg": "0.0.1"}
    wanted = json.dumps(found, indent=2)
    assert json.loads(text) == json.loads(json.dumps(json.loads(text), indent=2))
    (folder / "cube.zarr/zarr.json").write_text(wanted)
    assert xcfg("cube", "verify", folder).code == 0
