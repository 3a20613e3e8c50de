"""Rule 5: only some ranks drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.taxonomy import DISTRIBUTED, UNRESOLVED
from xcfg.model.json import Json, thaw
from xcfg.model.result import Finding, RankComparison
from xcfg.model.status import Status

SOME_RANKS = "only_some_ranks_drift"

ENOUGH_TOKENS = 16
"""Active tokens from which a rank within the threshold counts as clean: a handful can be clean by chance."""
APART = 2.0
"""The drift belongs to the ranks, and is no outlier that fell on one of them, where the lowest mean abs(d) of the
drifting ranks is this many times the highest of the clean ones."""
RULE_OUT = ("placement", "shard bounds", "collectives", "active counts", "masks", "cache positions")
"""What has to be ruled out before another cause is looked for (measurement contract, rule 5)."""


def only_some_ranks_drift(evidence: Evidence) -> Finding | None:
    """Rule 5: some pairs of ranks exceed the threshold and others, with tokens enough, stay within it.

    Each pair is held by its own ``max_abs_dlogp`` against the threshold. Confidence is low where the drifting ranks'
    mean abs(d) does not stand apart: then a rare outlier may have fallen on them by chance.
    """
    comparison = evidence.comparison
    threshold = comparison.threshold
    if comparison.status is not Status.FAIL or threshold is None:
        return None
    pairs = sorted(
        (pair for pair in comparison.per_rank if "max_abs_dlogp" in pair.metrics),
        key=lambda pair: (pair.rollout_rank, pair.train_rank),
    )
    drifting = [pair for pair in pairs if pair.metrics["max_abs_dlogp"] > threshold]
    within = [pair for pair in pairs if pair.metrics["max_abs_dlogp"] <= threshold]
    clean = [pair for pair in within if pair.active_tokens >= ENOUGH_TOKENS]
    if not drifting or not clean:
        return None
    apart = _stand_apart(drifting, clean)
    named = _names(drifting, clean)
    return Finding(
        source_class=UNRESOLVED,
        subclass=DISTRIBUTED,
        rule=SOME_RANKS,
        evidence={
            "threshold": threshold,
            "drifting": [_entry(pair) for pair in drifting],
            "clean": [_entry(pair) for pair in clean],
            "too_few_tokens": [_entry(pair) for pair in within if pair.active_tokens < ENOUGH_TOKENS],
            "stand_apart": apart,
            **named,
            "differing_metadata": _differing(drifting, clean),
            "rule_out": list(RULE_OUT),
            "assumed": list(comparison.assumed),
        },
        advice=f"only some ranks drift ({_words(named, drifting)}): treat it as a fault of the distributed "
        f"infrastructure until these are ruled out on those ranks: {', '.join(RULE_OUT)}"
        + ("" if apart else "; their mean drift is no larger than that of the clean ranks, so it may be a rare outlier")
        + evidence.caveat(),
        confidence=evidence.measured() if apart else "low",
    )


def _stand_apart(drifting: Sequence[RankComparison], clean: Sequence[RankComparison]) -> bool:
    lowest = min(pair.metrics.get("mean_abs_dlogp", 0.0) for pair in drifting)
    highest = max(pair.metrics.get("mean_abs_dlogp", 0.0) for pair in clean)
    return lowest > 0.0 and lowest >= APART * highest


def _entry(pair: RankComparison) -> dict[str, Json]:
    numbers = {name: pair.metrics[name] for name in ("max_abs_dlogp", "mean_abs_dlogp") if name in pair.metrics}
    return {
        "rollout_rank": pair.rollout_rank,
        "train_rank": pair.train_rank,
        "active_tokens": pair.active_tokens,
        **numbers,
    }


def _names(drifting: Sequence[RankComparison], clean: Sequence[RankComparison]) -> dict[str, list[int]]:
    """Ranks of each side that drift in every pair with tokens enough."""
    found = {}
    for key, side in (("training_ranks", "train_rank"), ("rollout_ranks", "rollout_rank")):
        wrong, right = ({getattr(pair, side) for pair in group} for group in (drifting, clean))
        found[key] = sorted(wrong - right)
    return found


def _words(named: Mapping[str, Sequence[int]], drifting: Sequence[RankComparison]) -> str:
    words = [f"{key.replace('_', ' ')} {', '.join(map(str, ranks))}" for key, ranks in named.items() if ranks]
    pairs = ", ".join(f"{pair.rollout_rank}-{pair.train_rank}" for pair in drifting)
    return " and ".join(words) or f"rollout-training pairs {pairs}"


def _differing(drifting: Sequence[RankComparison], clean: Sequence[RankComparison]) -> list[Json]:
    """Metadata of either side in which no drifting rank equals a clean one, the rank's own number aside."""
    found: list[Json] = []
    for side in ("rollout", "training"):
        keys = sorted({key for pair in (*drifting, *clean) for key in getattr(pair, side)} - {"rank"})
        for key in keys:
            wrong, right = (_distinct(getattr(pair, side).get(key) for pair in group) for group in (drifting, clean))
            if not any(value in right for value in wrong):
                found.append({"side": side, "field": key, "drifting": wrong, "clean": right})
    return found


def _distinct(values: Iterable[Json]) -> list[Json]:
    found: list[Json] = []
    for value in map(thaw, values):
        if value not in found:
            found.append(value)
    return found
