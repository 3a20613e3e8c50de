"""The evidence of a case that has no array of its own, as one JSON text; no attempt number, host or clock."""

from __future__ import annotations

import json
import math

from xcfg.model.case import SideConfig
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome, SideOutcome


def record(outcome: CaseOutcome) -> str:
    """JSON with sorted keys; numbers that are not finite become null.

    Fields: ``reason``, ``contract``, ``baseline_dtype``, ``worst``, ``findings``, ``assumed``,
    ``per_rank`` (metadata of each pair of ranks; its numbers are arrays) and ``sides`` by role: ``scorer``, ``knobs``
    (requested, materialized, observed, state, reason of every knob), ``inapplicable``, ``operators``, ``failure``.
    """
    comparison = outcome.comparison
    found = {
        "reason": comparison.reason,
        "contract": comparison.contract,
        "baseline_dtype": comparison.baseline_dtype,
        "worst": None if comparison.worst is None else unstructure(comparison.worst),
        # how a process ended after its numbers were sealed is of that launch and not of the result
        "findings": [item for item in comparison.findings if item.subclass != "process-exit"],
        "assumed": comparison.assumed,
        "per_rank": [
            {
                "rollout_rank": pair.rollout_rank,
                "train_rank": pair.train_rank,
                "rollout": pair.rollout,
                "training": pair.training,
            }
            for pair in comparison.per_rank
        ],
        "sides": {
            "rollout": _side(outcome.case.rollout, outcome.rollout),
            "training": _side(outcome.case.training, outcome.training),
        },
    }
    return json.dumps(_finite(unstructure(found)), sort_keys=True, ensure_ascii=False, allow_nan=False)


def _side(config: SideConfig, side: SideOutcome) -> Json:
    provenance, failure = side.provenance, side.failure
    return {
        "scorer": config.scorer,
        "knobs": {name: {"requested": value} for name, value in config.knobs.items()}
        if provenance is None
        else provenance.knobs,
        "inapplicable": config.inapplicable,
        "operators": {} if provenance is None else provenance.operators,
        # the paths of the logs name the attempt
        "failure": None if failure is None else {"status": failure.status, "reason": failure.reason},
    }


def _finite(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
