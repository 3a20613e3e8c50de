"""What was not the same around the two sides of a stored case."""

from __future__ import annotations

from pathlib import Path

from xcfg.diagnosis.environment import Surrounding, differences
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome, SideOutcome
from xcfg.runner.artifacts import attempt


def difference_documents(folder: Path, outcome: CaseOutcome) -> list[Json]:
    """The differences of a case, the likeliest to matter first; none where a side has no result."""
    rollout, training = (_surrounding(folder, side) for side in (outcome.rollout, outcome.training))
    if rollout is None or training is None:
        return []
    return [unstructure(item) for item in differences(rollout, training)]


def _surrounding(folder: Path, side: SideOutcome) -> Surrounding | None:
    found = attempt(folder, side.side_id, side.attempt) if side.provenance is not None else None
    if found is None or found.attempt is None:
        return None
    result, around = found.attempt.result, found.attempt.surroundings
    return Surrounding(
        identity=result.identity,
        provenance=result.provenance,
        ranks=result.ranks,
        fingerprint=around.fingerprint,
        facts=around.facts,
    )
