"""Modes and profiles on the command line."""

import pytest


def test_every_mode_of_an_experiment_is_an_option(xcfg, write) -> None:
    experiment = write(slices={}, axes={"rollout.dtype": ["bfloat16", "float32"], "batch.size": [8, 1]}, cases=[])
    numbers = {"one_at_a_time": 3, "two_at_a_time": 4, "pairwise": 4, "product": 4, "zip": 2}
    for mode, number in numbers.items():
        done = xcfg("plan", experiment, "--allow-fake", "--json", "--mode", mode)
        assert done.code == 0 and done.document["counts"] == {"planned": number, "rejected": 0}


def test_a_profile_gives_its_cases_and_tells_what_it_cannot_align(xcfg, write) -> None:
    experiment = write(baseline={"rollout.attention_backend": "sdpa", "training.attention_backend": None})
    done = xcfg("plan", experiment, "--allow-fake", "--profile", "A1", "--profile", "A5", "--json").document
    assert [case["name"] for case in done["cases"]] == ["baseline", "A1"]
    aligned = {name: done["cases"][1]["axes"][name] for name in ("batch.size", "rollout.dtype")}
    assert aligned == {"batch.size": 1, "rollout.dtype": "bfloat16"}
    assert "left to the engine" in done["unaligned"]["rollout.attention_backend"]
    text = xcfg("plan", experiment, "--allow-fake", "--profile", "A1").out
    assert "rollout.attention_backend keeps its production value" in text
    assert xcfg("plan", experiment, "--allow-fake", "--json").document["unaligned"] == {}
    assert (
        xcfg("run", experiment, "--allow-fake", "--profile", "A0", "--dry-run", "--json").document["counts"]["planned"]
        == 1
    )


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--profile", "A9"], 2, "there are A0, A1, A2, A3, A4, A5"),
        (["--profile", "A1", "--mode", "zip"], 2, "leave --mode out"),
        (["--profile", "A1", "--filter", "batch.size=3"], 5, "no case is left"),
        (["--slice", "nothing"], 5, "no case is left"),
        (["--max-cases", "2"], 2, "4 cases, more than the 2 allowed"),
        (["fixed.batch.size=2"], 2, "hides the axis 'batch.size'"),
        (["baseline.rollout.dtype=int4"], 2, "'int4' is not accepted"),
    ],
)
def test_bad_input_has_its_place_and_code(xcfg, write, options: list[str], code: int, said: str) -> None:
    experiment = write(slices={"nothing": {"source_classes": ["representation"]}})
    done = xcfg("plan", experiment, *options, "--allow-fake")
    assert done.code == code
    assert said in done.err.replace("\n", " ")
