"""What training with one case came to, against training with its aligned reference."""

from __future__ import annotations

from xcfg.analyzer.course import clearly_below, course
from xcfg.analyzer.curves import Curves
from xcfg.model.json import Json


def worse_downstream(reference: Curves, case: Curves) -> dict[str, Json]:
    """Reward and task evaluations that end clearly below those of the reference, each with both levels.

    A level is the median of the last window of :func:`xcfg.analyzer.course.course`, clear what exceeds the noise of the
    noisier curve. A curve that only one of the two has, or that is too short to tell, is left out.
    """
    found: dict[str, Json] = {}
    for name in ("reward", *sorted({*reference.evaluations} & {*case.evaluations})):
        theirs, own = course(reference.series(name)), course(case.series(name))
        if theirs is None or own is None:
            continue
        if clearly_below(own.end, theirs.end, max(own.noise, theirs.noise)):
            found[name] = {"reference": theirs.end, "case": own.end}
    return found
