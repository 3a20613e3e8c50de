"""Whether a stored attempt still stands for what an engine would give now."""

from __future__ import annotations

from xcfg.model.case import SideConfig
from xcfg.model.json import thaw
from xcfg.runner.artifacts import Newest
from xcfg.runner.fingerprint import difference, fingerprint
from xcfg.runner.lookup import Lookup


def objection(config: SideConfig, found: Newest, registry: Lookup, repeat: int = 1) -> str:
    """Why an attempt does not serve in the place of a new one: broken, other code, too few repeats. Empty if it does.

    A failure is no attempt to be accepted; it is the caller's to look at.
    """
    if found.attempt is None:
        return found.refused
    former = thaw(found.attempt.surroundings.fingerprint)
    if changed := difference(former, fingerprint(config, registry)):
        return f"made with something else: {changed}"
    count = found.attempt.measured.repeats["count"]
    if count < repeat:
        return f"scored {count} times, {repeat} are asked for"
    return ""
