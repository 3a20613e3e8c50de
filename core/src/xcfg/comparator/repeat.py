"""Run-to-run noise of one side: the same tokens scored again on the same engine."""

from __future__ import annotations

from xcfg.model.attempt import Measured
from xcfg.model.knob import SourceClass
from xcfg.model.result import Finding


def repeat_findings(side: str, measured: Measured) -> tuple[Finding, ...]:
    """A finding of class execution where scoring again gave other bits; nothing where it was scored once.

    ``measured.repeats`` holds ``count``, ``bitwise_equal`` and ``max_abs_difference`` (nats; None where not finite).
    """
    repeats = measured.repeats
    if not repeats or repeats["bitwise_equal"]:
        return ()
    return (
        Finding(
            source_class=SourceClass.EXECUTION.value,
            subclass="run-to-run",
            rule="repeat",
            evidence={
                "side": side,
                "scored": repeats["count"],
                "max_abs_difference": repeats["max_abs_difference"],
            },
            advice="the same tokens gave other logprobs on the same engine: make the side deterministic before reading "
            "any other difference",
        ),
    )
