"""A diagnosis as findings of a comparison, listed after its own."""

from __future__ import annotations

from xcfg.diagnosis.build import Built
from xcfg.diagnosis.diagnose import diagnose
from xcfg.diagnosis.signature import Diagnosis
from xcfg.model.result import Finding

RULE = "signature"
"""Prefix of the rule: ``signature:shift``."""


def diagnosed(built: Built) -> list[Finding]:
    """The findings of the tokens that were looked at; they never change a verdict."""
    return findings(diagnose(built.observed), built)


def findings(diagnosis: Diagnosis, built: Built) -> list[Finding]:
    """One finding a signature, best first, with what it was drawn from: tokens, noise floor, notes."""
    drawn_from = {"looked_at": built.evidence(), "noise_floor": dict(diagnosis.floor), "notes": list(diagnosis.notes)}
    return [
        Finding(
            source_class=item.source_class,
            subclass=item.subclass,
            rule=f"{RULE}:{item.kind}",
            evidence={"explained": item.explained, **item.evidence, **drawn_from},
            advice=diagnosis.too_few or item.advice,
            confidence=item.confidence,
        )
        for item in diagnosis.signatures
    ]
