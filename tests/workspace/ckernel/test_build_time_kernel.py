"""One C kernel built twice: the axis selects each build by digest, in a process of its own, and other bits come out."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

KNOB = "kernel.fast_math"
UNIT = 2.0**-24
"""Half the distance from 1 to the next float32: the relative error of one rounding."""


def test_the_compiler_made_two_artifacts(bench: Any) -> None:
    builds = bench.builds
    assert set(builds) == {False, True}
    for fast, build in builds.items():
        assert hashlib.sha256(bench.library(fast).read_bytes()).hexdigest() == build["fingerprint"]
    assert builds[False]["fingerprint"] != builds[True]["fingerprint"]


def test_each_value_is_proven_by_the_digest_of_what_was_loaded(bench: Any, runs: list[Any]) -> None:
    assert sorted(run.fast for run in runs) == [False, False, True, True]
    for run in runs:
        bound = run.observed["operators"]["selected_logprob"]
        assert bound["build"] == hashlib.sha256(bench.library(run.fast).read_bytes()).hexdigest()
        assert bound["concrete"].endswith(bench.library(run.fast).name)
        reading = run.observed["knobs"][KNOB]
        assert (reading["observed"], reading["state"]) == (run.fast, "applied")


def test_each_build_has_its_own_processes(runs: list[Any], seen: dict[str, Any]) -> None:
    assert len({run.launch["name"] for run in runs}) == len(seen) == 4
    for run in runs:
        [task] = run.launch["builds"]
        assert task["build"]["knobs"] == {KNOB: run.fast}
        assert not any(knob["name"] == KNOB for step in run.launch["steps"] for knob in step["knobs"])


def of_build(runs: list[Any], seen: dict[str, Any], fast: bool) -> list[Any]:
    """The processes whose kernel returned what a side run of this build has sealed, bit for bit."""
    bits = {run.logprobs.tobytes() for run in runs if run.fast is fast}
    return [found for found in seen.values() if found.logprobs.tobytes() in bits]


def test_the_builds_give_other_bits_for_the_same_logits(runs: list[Any], seen: dict[str, Any]) -> None:
    strict, fast = of_build(runs, seen, False), of_build(runs, seen, True)
    assert len(strict) == len(fast) == 2
    for other in (*strict, *fast):
        assert np.array_equal(other.logits, strict[0].logits) and np.array_equal(other.targets, strict[0].targets)
    differing = strict[0].logprobs.view(np.uint32) != fast[0].logprobs.view(np.uint32)
    assert differing.any(), "-ffast-math changed no bit"
    print(f"{differing.sum()} of {len(differing)} logprobs differ in bits")


def test_both_builds_are_as_exact_as_float32_sums_are(seen: dict[str, Any]) -> None:
    """However a sum of V terms is grouped, its relative error is below V roundings; exp adds a few units in the last
    place to each term, and the last two subtractions one rounding each of what they give."""
    for found in seen.values():
        exact = found.logits.astype(np.float64)
        shifted = exact - exact.max(axis=1, keepdims=True)
        normaliser = np.log(np.exp(shifted).sum(axis=1))
        chosen = shifted[np.arange(len(exact)), found.targets]
        rounding = (exact.shape[1] + 8 - shifted.min(axis=1) + 4 * (abs(chosen) + abs(normaliser))) * UNIT
        assert np.all(abs(found.logprobs - (chosen - normaliser)) <= rounding)


def test_what_fast_math_does_to_a_process_stays_in_it(runs: list[Any], seen: dict[str, Any]) -> None:
    """Some compilers link start-up code into a fast-math library that makes the process flush denormals to zero."""
    assert not any(found.flushes for found in of_build(runs, seen, False))


def test_an_artifact_that_was_changed_is_not_loaded(bench: Any, tmp_path: Path) -> None:
    other = bench.copy(tmp_path / "changed")
    shutil.copyfile(other.library(True), other.library(False))
    _, found = other.xcfg("run", "--out", other.root / "out", "--filter", f"{KNOB}=false")
    [case] = found["cases"]
    assert case["status"] == "launch_error"
    assert bench.builds[False]["fingerprint"] in case["reason"] and "it was not loaded" in case["reason"]
    assert not any(other.root.glob("out/sides/*/*/samples.safetensors"))


def test_a_value_without_a_build_is_unsupported(bench: Any, tmp_path: Path) -> None:
    other = bench.copy(tmp_path / "one")
    path = other.root / "xcfg_ckernel/builds.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:1]))
    code, document = other.xcfg("plan")
    assert code == 0
    plain, refused = document["cases"]
    assert not plain["rejected"] and refused["kind"] == "unsupported"
    assert f"has no build with {KNOB}=true but only with {KNOB}=false" in refused["rejected"]
