"""One entry of ``cases`` in the documents of ``run`` and ``report``."""

from __future__ import annotations

from xcfg.cli.documents import case_document
from xcfg.cli.drift_profile import drift_profile
from xcfg.cli.measured import measured_documents
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome


def executed_document(outcome: CaseOutcome) -> dict[str, Json]:
    """The case as it was judged, with what it cost and how its drift runs along the responses."""
    return {
        **case_document(outcome),
        "measured": measured_documents(outcome),
        "drift_profile": drift_profile(outcome),
    }
