"""Copies of a checkpoint that were made from it, quantised ones above all, and the knob that chooses among them."""

from __future__ import annotations

from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import MaterializerDescriptor

WEIGHTS = "rollout.weights"
"""The knob whose value names the copy that the rollout engine loads, as the experiment's ``derived`` lists them.

The host applies it to any scorer by the folder it has it open, and observes it by the digest of what was loaded.
"""


def opened_weights(scorer: str) -> MaterializerDescriptor:
    """How :data:`WEIGHTS` reaches a scorer: no code of the scorer's own takes part."""
    return MaterializerDescriptor(knob=WEIGHTS, scorer=scorer, lifecycle=Lifecycle.ENGINE)
