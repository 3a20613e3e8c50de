"""What recorded files say about their logprobs, field by field, and what is assumed where they do not."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from xcfg.model.json import Json, freeze

DEFAULTS: Mapping[str, Json] = freeze(
    {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "logprobs_mode": "raw_logprobs"}
)
"""What a field that a file leaves out counts as."""
OPTIONAL = ("min_p",)
"""Compared where stated, and not counted as unknown where no side does."""
WEIGHTS = ("weight_version", "checkpoint")
"""The fields that a stated weight version settles."""


@frozen(kw_only=True)
class Agreement:
    """Two statements compared: a sentence for the first field that differs, and the fields a side leaves out."""

    difference: str = ""
    unknown: frozenset[str] = frozenset()


def agree(rollout: Mapping[str, Json], training: Mapping[str, Json]) -> Agreement:
    """Compare the ``semantics`` of two records. A field missing on one side counts as its default."""
    unknown = {name for name in DEFAULTS if name not in rollout or name not in training}
    unknown -= {name for name in OPTIONAL if name not in rollout and name not in training}
    for name, default in DEFAULTS.items():
        left, right = (_normal(name, side.get(name, default)) for side in (rollout, training))
        if left != right:
            said = ", ".join(
                f"{side} {value!r}" + ("" if name in stated else " (its default, not stated)")
                for side, value, stated in (("rollout", left, rollout), ("training", right, training))
            )
            return Agreement(difference=f"{name} differs: {said}", unknown=frozenset(unknown))
    return Agreement(unknown=frozenset(unknown))


def _normal(name: str, value: Json) -> Json:
    """One spelling: top_k of -1 is no truncation, as 0 is; ``raw`` is ``raw_logprobs``."""
    if name == "top_k" and value == -1:
        return 0
    if name == "logprobs_mode" and value in ("raw", "processed"):
        return f"{value}_logprobs"
    return value
