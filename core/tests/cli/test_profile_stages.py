"""Profile A4 is executed only where the reference and every single class pass and production fails."""

import json

import pytest

from .own_contract import write_contract

PRODUCTION = {
    "rollout.kv_cache_dtype": "float8_e5m2", "rollout.dtype": "bfloat16", "training.compute_dtype": "bfloat16",
    "rollout.tensor_parallel_size": 2,
    "batch.size": 1, "rollout.scoring_path": "prefill", "rollout.enforce_eager": True,
    "training.output_dtype": "float32", "training.reduce_dtype": "float32",
}  # fmt: skip
PROFILES = [option for name in ("A0", "A1", "A2", "A3", "A4", "A5") for option in ("--profile", name)]


@pytest.fixture
def run(xcfg, write, tmp_path):
    """Run the profiles under a limit; the process's call and the cases by name."""

    def make(limit, *profiles, out):
        name = write_contract(tmp_path, limit)
        tokens = {"sample": {"prompts": "prompts.jsonl", "max_new_tokens": 16}}
        path = write(baseline=PRODUCTION, axes={}, cases=[], slices={}, tokens=tokens, contract=name)
        done = xcfg("-q", "run", path, *profiles, "--allow-fake", "--out", tmp_path / out, "--json")
        return done, {case["name"]: case for case in json.loads(done.out)["cases"]}

    return make


def test_pairs_are_executed_only_where_singles_do_not_explain(run) -> None:
    # What the fake model gives: production 0.86 nats, representation alone 0.58, each other class alone below 0.01.
    done, cases = run(0.7, *PROFILES, out="interacting")
    assert cases["baseline"]["status"] == "fail"
    assert {cases[name]["status"] for name in ("A0", "A1", "A2", "A3")} == {"pass"}
    assert "A4 arithmetic+representation" in cases and "left out" not in done.err
    engines = done.document["engines"]
    assert engines["constructed"] == engines["distinct"] and engines["reused_from_disk"] == 0
    done, cases = run(0.02, *PROFILES, out="single")
    assert cases["A3"]["status"] == "fail" and not [name for name in cases if name.startswith("A4")]
    assert "A4 was left out" in done.err
    _, cases = run(0.02, *PROFILES, "--filter", "rollout.kv_cache_dtype=float8_e5m2", out="single")
    assert set(cases) == {"baseline", "A3", "A4 arithmetic+representation", "A4 reduction+representation"}
    _, cases = run(0.02, "--profile", "A4", out="asked")
    assert [name for name in cases if name.startswith("A4")]
