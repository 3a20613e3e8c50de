"""Scenarios of diagnosis: kinds of faults that can be drawn in any number, with their right answers.

A small synthetic language model is scored twice, by two sides that round at the dtype and sum in other orders. A
scenario then lets one side do what a real cause does: divide its logits, lose its cache at a block, roll its labels.
What is left is an :class:`~xcfg.diagnosis.observed.Observed`, with as much metadata as someone may have kept. Numbers
come from the generator that is passed, so that any seed draws new instances::

    from xcfg.testing.scenarios import SCENARIOS, Shape

    observed = SCENARIOS["temperature-rollout"].draw(np.random.default_rng(7), Shape(rows=24, tokens=2000))
"""

from __future__ import annotations

# Each module registers its scenarios when it is imported.
from xcfg.testing.scenarios import (
    caches,  # noqa: F401
    clean,  # noqa: F401
    ends,  # noqa: F401
    groups,  # noqa: F401
    offsets,  # noqa: F401
    pairs,
    positions,  # noqa: F401
    processors,  # noqa: F401
    recorded,  # noqa: F401
    storage,  # noqa: F401
    supports,  # noqa: F401
    tempered,  # noqa: F401
    tokens,  # noqa: F401
    transforms,  # noqa: F401
    unexplained,  # noqa: F401
    versions,  # noqa: F401
)
from xcfg.testing.scenarios.layout import Shape, Wants
from xcfg.testing.scenarios.scenario import SCENARIOS, Scenario

pairs.register()

__all__ = ["SCENARIOS", "Scenario", "Shape", "Wants"]
