"""The terminal report, from documents written by hand."""

import io
from typing import Any

from rich.console import Console

from xcfg.report.terminal import print_report
from xcfg.report.wording import verdict_line

CONTRACT = {"id": "mine", "version": "1", "digest": "abcdef0123456789"}


def case(status: str, name: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "id": "0123456789abcdef",
        "name": name,
        "status": status,
        "reason": "",
        "axes": {"rollout.dtype": "float32"},
        "changed": ["rollout.dtype"],
        "threshold": 0.5,
        "contract": CONTRACT,
        "drift_profile": [],
        "active_tokens": 7,
        "metrics": {},
        "worst": None,
        "findings": [],
        **fields,
    }


def printed(*cases: dict[str, Any], **fields: Any) -> str:
    counts: dict[str, int] = {}
    for item in cases:
        counts[item["status"]] = counts.get(item["status"], 0) + 1
    content = {"name": "e", "status": cases[0]["status"], "fake": False, "counts": counts, "cases": cases, **fields}
    out = io.StringIO()
    print_report(Console(file=out, width=140, no_color=True), content)
    return out.getvalue()


def test_verdict_comes_first_and_counts_what_was_not_judged() -> None:
    counts = {"pass": 2, "fail": 3, "unsupported": 1, "launch_error": 4}
    line = verdict_line({"status": "launch_error", "counts": counts})
    assert line == "LAUNCH_ERROR: 2 passed, 3 failed of 5 judged; 4 launch error; 1 unsupported"
    assert printed(case("pass")).startswith("e: PASS: 1 passed, 0 failed of 1 judged")


def test_the_worst_token_is_that_of_the_largest_failing_case() -> None:
    worst = {"sequence": "s1", "position": 4, "token": 9, "rollout_logp": -1.0, "train_logp": -2.0}
    ranks = {"rollout_rank": 0, "train_rank": 1}
    small = case("fail", metrics={"max_abs_dlogp": 0.7}, worst={**worst, **ranks, "sequence": "small"})
    large = case("fail", metrics={"max_abs_dlogp": 1.0}, worst={**worst, **ranks})
    text = printed(small, large)
    assert "sequence 's1', position 4, token 9: rollout -1.000000 (rank 0), training -2.000000 (rank 1)" in text
    assert "sequence small" not in text


def test_one_reason_is_told_once() -> None:
    text = printed(*[case("environment_error", reason="no engine here") for _ in range(3)])
    assert text.count("no engine here") == 1 and "and 2 more cases" in text


def test_a_fake_is_marked() -> None:
    assert "say nothing about any engine" in printed(case("pass"), fake=True)


def test_markup_in_a_file_is_shown_and_not_interpreted() -> None:
    assert "[bold]x[/bold]" in printed(case("fail", name="[bold]x[/bold]"))
