"""Numbers and settings in words."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json

FAKE_NOTE = "made with fake scorers: these numbers say nothing about any engine"


def limit_note(content: Mapping[str, Json]) -> str:
    """That only a part of the tokens was compared; empty where all were."""
    limit = content.get("limited")
    return "" if limit is None else f"limited to {limit} active tokens: a smoke test, no verdict on the whole batch"


STYLES = {"pass": "green", "fail": "red", "unsupported": "dim"}
"""Colours of statuses; every other one is yellow."""


def number(value: float | None) -> str:
    """Three significant digits; a dash where there is none."""
    return "-" if value is None else f"{value:.3g}"


def setting(value: Json) -> str:
    """A knob's value; null is the engine's own choice."""
    if value is None:
        return "engine's choice"
    return str(value).lower() if isinstance(value, bool) else str(value)


def change(case: Mapping[str, Json]) -> str:
    """What a case changes from the baseline: ``rollout.dtype=float32``."""
    if not case["changed"]:
        return "production"
    return ", ".join(f"{name}={setting(case['axes'].get(name))}" for name in case["changed"])


def verdict_line(content: Mapping[str, Json]) -> str:
    """``FAIL: 2 passed, 14 failed of 16 judged; 1 unsupported``."""
    counts = dict(content["counts"])
    passed, failed = counts.pop("pass", 0), counts.pop("fail", 0)
    line = f"{content['status'].upper()}: {passed} passed, {failed} failed of {passed + failed} judged"
    return line + "".join(f"; {count} {name.replace('_', ' ')}" for name, count in sorted(counts.items()))


def token_words(item: Mapping[str, Json]) -> str:
    """Where a token stands and what both sides say of it."""
    text = f" {item['text']!r}" if item.get("text") else ""
    return (
        f"sequence {item['sequence']!r}, position {item['position']}, token {item['token']}{text}: rollout "
        f"{item['rollout_logp']:.6f} (rank {item['rollout_rank']}), training {item['train_logp']:.6f} "
        f"(rank {item['train_rank']}), d {item['train_logp'] - item['rollout_logp']:+.6f}"
    )


def around_words(item: Mapping[str, Json]) -> str:
    """The tokens around a worst one, each with its d."""
    return " ".join(
        f"{repr(near['text']) if near.get('text') else near['token']}[{near['dlogp']:+.3g}]" for near in item["around"]
    )
