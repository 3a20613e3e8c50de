"""``xcfg show``: what was not the same around the sides of a case."""

from __future__ import annotations


def test_a_failed_case_shows_them_and_json_always(xcfg, write, tmp_path) -> None:
    from .own_contract import write_contract

    out = tmp_path / "out"
    run = xcfg("-q", "run", write(contract=write_contract(tmp_path, 1e-6)), "--allow-fake", "--out", out, "--json")
    failed = next(case for case in run.document["cases"] if case["status"] == "fail")
    passed = next(case for case in run.document["cases"] if case["status"] == "pass")
    shown = xcfg("show", out, failed["id"], "--json").document["differences"]
    dtypes = next(item for item in shown if item["name"] == "compute dtype")
    observed = {
        name: knob["sides"][role]["observed"]
        for name, knob in xcfg("show", out, failed["id"], "--json").document["case"]["knobs"].items()
        for role in knob["sides"]
        if name in ("rollout.dtype", "training.compute_dtype")
    }
    assert (
        dtypes["rollout"] == [observed["rollout.dtype"]] != dtypes["training"] == [observed["training.compute_dtype"]]
    )
    assert "every matrix product rounds to it" in xcfg("show", out, failed["id"]).out
    assert "not the same" not in xcfg("show", out, passed["id"]).out
