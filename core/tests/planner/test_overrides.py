from __future__ import annotations

from typing import Any

import pytest

CASES = [{"name": "a.b", "set": {"batch.size": 1}}, {"name": "c"}]


def test_knob_names_with_dots_resolve(bench: Any) -> None:
    made = bench.load(
        bench.minimal(axes={"batch.size": [1, 2]}),
        "axes.rollout.dtype=[bf16, fp32]",
        "baseline.rollout.dtype=fp32",
        "tokens.sample.max_new_tokens=8",
        "axes.batch.size.1=4",
        "mode=product",
    ).experiment
    assert dict(made.axes) == {"batch.size": (1, 4), "rollout.dtype": ("bfloat16", "float32")}
    assert dict(made.baseline) == {"rollout.dtype": "float32"}
    assert made.tokens.sample.max_new_tokens == 8
    assert made.mode.value == "product"


def test_cases_are_addressed_by_index_and_by_name(bench: Any) -> None:
    content = bench.minimal(cases=CASES, slices={"x.y": {"baseline": True}})
    made = bench.load(
        content, "cases.1.set.rollout.dtype=fp32", "cases.a.b.set.batch.size=2", "slices.x.y.cases=[c]"
    ).experiment
    assert dict(made.cases[1].set) == {"rollout.dtype": "float32"}
    assert dict(made.cases[0].set) == {"batch.size": 2}
    assert made.slices["x.y"].cases == ("c",)


def test_shorthands_work_in_overrides(bench: Any) -> None:
    made = bench.load(
        bench.minimal(),
        "axes=[{knob: batch.size, values: [2]}]",
        "operators.selected_logprob.training=late",
        "training.checkpoint.path=model",
    ).experiment
    assert dict(made.axes) == {"batch.size": (2,)}
    assert made.operators["selected_logprob"].training.backend == "late"


def test_the_longest_known_key_wins(bench: Any) -> None:
    knob = bench.catalog.all_knobs["batch.size"]
    bench.catalog.all_knobs["batch"] = knob
    usual = bench.catalog.materializer
    bench.catalog.materializer = lambda name, scorer: usual("batch.size" if name == "batch" else name, scorer)
    made = bench.load(bench.minimal(), "baseline.batch.size=2", "baseline.batch=3").experiment
    assert dict(made.baseline) == {"batch.size": 2, "batch": 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("axes.rollout.dtyp=[bf16]", "override axes.rollout.dtyp: unknown knob 'rollout.dtyp', did you mean"),
        ("tokens.sampel.seed=1", "override tokens.sampel.seed: unknown field 'sampel', did you mean 'sample'?"),
        ("nme=1", "override nme: unknown field 'nme', did you mean 'name'?"),
        ("timeout=3", "override timeout: 'timeout' is an option of `xcfg run`"),
        ("threshold=3", "override threshold: 'threshold' is refused: limits belong"),
        ("cases.7.name=x", "cases has no item '7', there are 2"),
        ("slices.ci.baseline=true", "override slices.ci.baseline: unknown entry"),
        ("name.first=x", "name has no parts, 'first' leads nowhere"),
        ("baseline.batch.size.x=1", "baseline.batch.size has no parts"),
        ("axes", "an override has the form PATH=VALUE"),
        ("=1", "an override has the form PATH=VALUE"),
        ("baseline.batch.size=[", "override baseline.batch.size:"),
        ("baseline.batch.size=1e400", "a finite number is required"),
        ("baseline.batch.size=0", "override baseline.batch.size: batch.size: 0 is out of range"),
        ("axes.rollout.dtype=[bf16, int4]", "override axes.rollout.dtype.1: rollout.dtype: 'int4' is not accepted"),
        ("tokens.sample.seed=x", "override tokens.sample.seed: expected int, got str 'x'"),
        ("checkpoint.path=gone", "override checkpoint.path: no model directory"),
        ("rollout.scorer=", "override rollout.scorer: expected str"),
    ],
)
def test_a_wrong_override_is_named(bench: Any, text: str, expected: str) -> None:
    found = bench.faults(bench.minimal(cases=CASES), text)
    assert len(found) == 1 and expected in found[0]


def test_an_override_below_something_that_is_no_mapping(bench: Any) -> None:
    found = bench.faults(bench.minimal(rollout="eng"), "rollout.scorer=eng")
    assert any("'rollout' is no mapping in the file" in fault for fault in found)


def test_overrides_and_the_file_are_judged_together(bench: Any) -> None:
    found = bench.faults(bench.minimal(mode="x"), "baseline.batch.size=0", "nme=1")
    assert [fault.split(": ")[0].split(" ")[-1] for fault in found] == ["mode", "baseline.batch.size", "nme"]


def test_a_replaced_value_is_not_judged(bench: Any) -> None:
    assert bench.load(bench.minimal(mode="x"), "mode=product").experiment.mode.value == "product"
