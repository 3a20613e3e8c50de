"""A plan: the expanded experiment, ready to run or to reload from disk."""

from __future__ import annotations

from attrs import field, frozen

from xcfg.model.case import Case
from xcfg.model.experiment import Experiment
from xcfg.model.json import Json, freeze, tupled

SCHEMA = "xcfg.plan/1"


@frozen(kw_only=True)
class Plan:
    """Cases in planning order, the baseline first.

    ``root`` is the folder that relative paths of the experiment start from; ``dimensions`` the ordered coordinate
    names of the cube; ``tokens`` the declared token source with the digest of the files it names.
    ``tokens`` also holds the ``limit`` of a smoke test, which compares a part of the source.
    ``reference`` is the baseline where a slice or filter left it out of ``cases``: it still gives the token batch.
    """

    schema: str = SCHEMA
    experiment: Experiment
    root: str
    baseline: str
    dimensions: tuple[str, ...] = field(converter=tupled)
    tokens: Json = field(converter=freeze)
    cases: tuple[Case, ...] = field(converter=tupled)
    reference: Case | None = None

    @property
    def runnable(self) -> tuple[Case, ...]:
        """Cases that were not rejected."""
        return tuple(case for case in self.cases if case.rejected is None)

    @property
    def limit(self) -> int | None:
        """Active tokens that the batch of a limited run has at most; None where the whole source is compared."""
        found: int | None = self.tokens.get("limit")
        return found

    def case(self, case_id: str) -> Case:
        """The case of this id, the baseline even where it is not among ``cases``. Raises KeyError."""
        for case in (*self.cases, self.reference):
            if case is not None and case.id == case_id:
                return case
        raise KeyError(case_id)
