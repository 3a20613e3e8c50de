"""Training curves as ``explain --curves`` names them: of production, or of any case that training was run with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from xcfg.analyzer.curves import Curves, read_curves
from xcfg.cli.commands.plan import find_case
from xcfg.errors import InvalidInput

if TYPE_CHECKING:
    from xcfg.model.plan import Plan


@frozen(kw_only=True)
class CaseCurves:
    """``production`` of the baseline, ``cases`` by the id of any other case."""

    production: Curves | None = None
    cases: Mapping[str, Curves] = field(factory=dict)

    def of(self, case_id: str, production: str) -> Curves | None:
        """Those of a case; ``production`` is the baseline's id."""
        return self.production if case_id == production else self.cases.get(case_id)


def read_case_curves(given: Iterable[str], plan: Plan) -> CaseCurves:
    """``FILE`` or ``CASE=FILE``, CASE an id, its beginning, or a name.

    Raises InvalidInput for a case that is unknown or given twice, and as :func:`xcfg.analyzer.curves.read_curves` does.
    """
    found: dict[str, Curves] = {}
    for text in given:
        name, equals, path = text.rpartition("=")
        if Path(text).is_file() or not equals:
            name, path = plan.baseline, text
        case = find_case(plan, name).id
        if case in found:
            raise InvalidInput(f"curves of {name!r} are given twice", where="--curves", hint="put them into one file")
        found[case] = read_curves(Path(path))
    return CaseCurves(
        production=found.get(plan.baseline),
        cases={case: curves for case, curves in found.items() if case != plan.baseline},
    )
