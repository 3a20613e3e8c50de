"""One case on the terminal, from a document written by hand."""

import io
from typing import Any

from rich.console import Console

from xcfg.report.case import print_case


def side(state: str, value: Any, reason: str = "") -> dict[str, Any]:
    return {"requested": value, "materialized": value, "observed": value, "state": state, "reason": reason}


def test_provenance_tells_what_has_no_meaning_and_what_was_left_to_the_engine() -> None:
    knobs = {
        "layout.padding_side": {"sides": {"rollout": side("inapplicable", None, "nothing is padded")}},
        "rollout.attention_backend": {"sides": {"rollout": {**side("applied", "CPU_ATTN"), "requested": None}}},
        "execution.prefix_cache": {"sides": {"rollout": side("applied", False)}},
    }
    case = {
        "id": "0123456789abcdef",
        "name": "n",
        "status": "pass",
        "reason": "",
        "axes": {},
        "changed": [],
        "dtype": "float32",
        "threshold": 0.5,
        "active_tokens": 3,
        "metrics": {},
        "limits": {},
        "assumed": [],
        "per_rank": [],
        "knobs": knobs,
    }
    out = io.StringIO()
    screen = Console(file=out, width=160, no_color=True)
    print_case(screen, {"case": case, "tokens": [], "differences": [], "fake": False}, per_rank=False)
    lines = {line.split()[0]: line.split() for line in out.getvalue().splitlines() if line.strip()}
    assert lines["layout.padding_side"][2:5] == ["-", "-", "-"]
    assert lines["rollout.attention_backend"][2:6] == ["engine's", "choice", "CPU_ATTN", "CPU_ATTN"]
    assert lines["execution.prefix_cache"][2:6] == ["false", "false", "false", "applied"]
