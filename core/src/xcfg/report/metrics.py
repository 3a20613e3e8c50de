"""Rows of tables about the metrics of one comparison."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.report.wording import number


def metric_rows(content: Mapping[str, Json]) -> list[list[str]]:
    """Every metric beside its own row of the contract, where it has one; that of ``max_abs_dlogp`` alone decides."""
    limits = content["limits"]
    return [
        [name, f"{value:.6g}", number(limits[name]) if name in limits else ""]
        for name, value in content["metrics"].items()
    ]


def rank_rows(content: Mapping[str, Json]) -> list[list[str]]:
    """Every pair of ranks: tokens, largest and mean abs(d)."""
    return [
        [str(item["rollout_rank"]), str(item["train_rank"]), str(item["active_tokens"]),
         number(item["metrics"].get("max_abs_dlogp")), number(item["metrics"].get("mean_abs_dlogp"))]
        for item in content["per_rank"]
    ]  # fmt: skip
