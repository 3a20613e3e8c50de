"""The cases of an ablation profile, and what each of them showed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled
from xcfg.model.knob import SourceClass
from xcfg.model.status import Status


class ProfileCase(StrEnum):
    """Which source classes keep their production values while everything else is aligned.

    A0 aligns everything, A1 to A3 leave one class, A4 two classes, A5 is full production.
    """

    A0 = "A0"
    A1 = "A1"
    A2 = "A2"
    A3 = "A3"
    A4_ARITHMETIC_REDUCTION = "A4:arithmetic+reduction"
    A4_ARITHMETIC_REPRESENTATION = "A4:arithmetic+representation"
    A4_REDUCTION_REPRESENTATION = "A4:reduction+representation"
    A5 = "A5"

    @property
    def singles(self) -> tuple[ProfileCase, ...]:
        """The single-class cases that a case combines: one for A1 to A3, two for a pair, none for A0 and A5."""
        return _SINGLES_OF[self]

    @property
    def classes(self) -> tuple[SourceClass, ...]:
        """The classes at production values; none listed for A0 and A5."""
        return tuple(_CLASS[single] for single in self.singles)


SINGLES = (ProfileCase.A1, ProfileCase.A2, ProfileCase.A3)
PAIRS = (
    ProfileCase.A4_ARITHMETIC_REDUCTION,
    ProfileCase.A4_ARITHMETIC_REPRESENTATION,
    ProfileCase.A4_REDUCTION_REPRESENTATION,
)

_CLASS = {
    ProfileCase.A1: SourceClass.ARITHMETIC,
    ProfileCase.A2: SourceClass.REDUCTION,
    ProfileCase.A3: SourceClass.REPRESENTATION,
}
_SINGLES_OF: Mapping[ProfileCase, tuple[ProfileCase, ...]] = {
    ProfileCase.A0: (),
    **{single: (single,) for single in SINGLES},
    ProfileCase.A4_ARITHMETIC_REDUCTION: (ProfileCase.A1, ProfileCase.A2),
    ProfileCase.A4_ARITHMETIC_REPRESENTATION: (ProfileCase.A1, ProfileCase.A3),
    ProfileCase.A4_REDUCTION_REPRESENTATION: (ProfileCase.A2, ProfileCase.A3),
    ProfileCase.A5: (),
}


@frozen(kw_only=True)
class AblationOutcome:
    """What a case of the profile showed.

    ``knobs`` are those that differ from the aligned reference. ``threshold`` (nats) is that of the case's own row.
    ``worse_downstream`` names downstream measures that are worse than under the reference, each with its two numbers
    (``{"eval/math": {"reference": 0.4, "case": 0.3}}``); empty where none is, or none was measured.
    """

    status: Status
    within_baseline_row: bool | None = None
    max_abs_dlogp: float | None = None
    threshold: float | None = None
    reason: str = ""
    knobs: tuple[str, ...] = field(default=(), converter=tupled)
    worse_downstream: Mapping[str, Json] = field(factory=dict, converter=freeze)

    @property
    def within(self) -> bool | None:
        """Whether the case is within the contract on the baseline's row; None where that was not judged.

        The row of the baseline and not the case's own, because aligning a dtype moves a case to another row: the
        question is whether the intervention brings the production contract within reach.
        """
        return self.within_baseline_row if self.status.judged else None

    def evidence(self) -> dict[str, Json]:
        """The outcome as plain JSON."""
        return {
            "status": self.status.value,
            "within_baseline_row": self.within_baseline_row,
            "max_abs_dlogp": self.max_abs_dlogp,
            "threshold": self.threshold,
            "knobs": list(self.knobs),
            **({"reason": self.reason} if self.reason else {}),
        }
