"""What a document says case by case, in the words that CI systems know: passed, failed, broken or skipped."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from xcfg.model.json import Json
from xcfg.report.wording import change, number

_SKIPPED = ("unsupported", "rejected")


@frozen(kw_only=True)
class Entry:
    """One case. ``kind`` is its status; ``message`` one line on it, ``detail`` more; ``seconds`` spent scoring."""

    name: str
    kind: str
    message: str
    detail: str = ""
    seconds: float | None = None

    @property
    def outcome(self) -> str:
        """``passed``; ``failed`` by a number; ``skipped`` where it was never to run; else ``broken``."""
        if self.kind in _SKIPPED:
            return "skipped"
        return {"pass": "passed", "fail": "failed"}.get(self.kind, "broken")


def entries(content: Mapping[str, Json]) -> list[Entry]:
    """The cases of a ``run``, ``report`` or ``gate`` document, in its order."""
    if "checks" in content:
        return [_check(check) for check in content["checks"]]
    return [_case(case) for case in content["cases"]]


def _check(check: Mapping[str, Json]) -> Entry:
    aligned = ", ".join(check["aligned"]) or "nothing aligned"
    row = "within" if check["expected"] else "outside"
    return Entry(
        name=f"{check['case']} {check['role']}: {aligned}",
        kind=check["status"],
        message=f"has to be {row} the production row: {_numbers(check['max_abs_dlogp'], check['threshold'])}",
        detail=check["advice"],
    )


def _case(case: Mapping[str, Json]) -> Entry:
    spent = [side["score_s"] for side in case["measured"].values() if side["score_s"] is not None]
    name = f"{case['id']} {case['name']}: {change(case)}" if case["name"] else f"{case['id']} {change(case)}"
    return Entry(
        name=name,
        kind=case["status"],
        message=case["reason"] or _numbers(case["metrics"].get("max_abs_dlogp"), case["threshold"]),
        detail=_worst(case),
        seconds=sum(spent) if spent else None,
    )


def _numbers(found: float | None, limit: float | None) -> str:
    return f"max |d| {number(found)} nats, limit {number(limit)}"


def _worst(case: Mapping[str, Json]) -> str:
    """Where the worst token is; empty where nothing was compared."""
    worst = case["worst"]
    if not worst:
        return ""
    return (
        f"worst token {worst['token']} of sequence {worst['sequence']!r}, position {worst['position']}: "
        f"rollout {worst['rollout_logp']!r}, training {worst['train_logp']!r}"
    )
