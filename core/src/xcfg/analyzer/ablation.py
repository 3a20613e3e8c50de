"""Reading rules over an ablation profile: which class is sufficient, which interact, or that no number explains it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from xcfg.analyzer.profile import PAIRS, SINGLES, AblationOutcome, ProfileCase
from xcfg.analyzer.taxonomy import ALGORITHMIC, INFRASTRUCTURE, NONE, UNRESOLVED
from xcfg.model.json import Json
from xcfg.model.result import Finding

BASE_PATH = "ablation_base_path_first"
SUFFICIENT = "ablation_class_sufficient"
INTERACTION = "ablation_interaction"
SENSITIVE = "ablation_behaviourally_sensitive"
NOT_NUMERICAL = "ablation_not_numerical"
INCOMPLETE = "ablation_cannot_tell"

Cases = Mapping[ProfileCase, AblationOutcome]


def read_ablation(
    cases: Cases, *, profile: Collection[ProfileCase] = tuple(ProfileCase), collapsed: bool | None = None
) -> tuple[Finding, ...]:
    """The findings of a profile. Whether a case fails is asked on the baseline's row, ``within_baseline_row``.

    ``profile`` are the cases that exist: an experiment without a knob of some class has no single and no pair for it;
    A0 and A5 every experiment has. ``collapsed`` says whether training collapses, None where that is not known. Where
    a case that an answer needs is missing or was not judged, a finding says so and which to run.
    """
    reference = _within(cases, ProfileCase.A0)
    if reference is None:
        return (_incomplete(cases, [ProfileCase.A0]),)
    if not reference:
        return (_base_path(cases[ProfileCase.A0]),)
    singles = [case for case in SINGLES if case in profile]
    failing = [case for case in singles if _within(cases, case) is False]
    found = [_sufficient(cases, case) for case in failing]
    found += [_sensitive(cases, case) for case in singles if _within(cases, case) and cases[case].worse_downstream]
    unknown = [case for case in (*singles, ProfileCase.A5) if _within(cases, case) is None]
    if not failing:
        pairs = [case for case in PAIRS if all(single in singles for single in case.singles) and case in profile]
        found += _interaction(cases, singles, pairs)
        needed = _within(cases, ProfileCase.A5) is False
        unknown += [case for case in pairs if _within(cases, case) is None and (needed or case in cases)]
    if unknown:
        found.append(_incomplete(cases, sorted(unknown, key=list(ProfileCase).index)))
    if not found and collapsed:
        found.append(_not_numerical(cases))
    return tuple(found)


def _within(cases: Cases, case: ProfileCase) -> bool | None:
    return cases[case].within if case in cases else None


def _numbers(cases: Cases, named: Sequence[ProfileCase]) -> dict[str, Json]:
    return {case.value: cases[case].evidence() for case in named if case in cases}


def _base_path(reference: AblationOutcome) -> Finding:
    return Finding(
        source_class=UNRESOLVED,
        subclass=INFRASTRUCTURE,
        rule=BASE_PATH,
        evidence={"cases": {ProfileCase.A0.value: reference.evidence()}},
        advice="the fully aligned reference already violates the contract: debug the base scoring path first; no other "
        "case of the profile means anything until A0 passes",
    )


def _sufficient(cases: Cases, case: ProfileCase) -> Finding:
    """A single fails. That production passes at the same time is kept in view: then effects cancel there."""
    cancels = _within(cases, ProfileCase.A5) is True
    name = case.classes[0].value
    return Finding(
        source_class=name,
        rule=SUFFICIENT,
        evidence={"case": case.value, "cases": _numbers(cases, (ProfileCase.A0, case, ProfileCase.A5))},
        advice=f"leaving only the {name} knobs at their production values violates the contract: that class is "
        f"sufficient ({', '.join(cases[case].knobs) or 'knobs not stated'})"
        + ("; full production passes, so its effect is cancelled there by another class" if cancels else ""),
        confidence="medium" if cancels else "high",
    )


def _sensitive(cases: Cases, case: ProfileCase) -> Finding:
    name = case.classes[0].value
    return Finding(
        source_class=name,
        subclass="behaviourally-sensitive",
        rule=SENSITIVE,
        evidence={
            "case": case.value,
            "cases": _numbers(cases, (ProfileCase.A0, case)),
            "worse_downstream": cases[case].worse_downstream,
        },
        advice=f"leaving only the {name} knobs at their production values is within the contract and yet worse "
        f"downstream ({', '.join(cases[case].worse_downstream)}): training is sensitive to this class; repeat with "
        "other seeds before aligning it",
        confidence="medium",
    )


def _interaction(cases: Cases, singles: Sequence[ProfileCase], pairs: Sequence[ProfileCase]) -> list[Finding]:
    """No single fails, but a pair of passing singles does, or production does although every single passes."""
    passing = {single for single in singles if _within(cases, single)}
    failing = sorted(
        (case for case in pairs if _within(cases, case) is False and passing.issuperset(case.singles)),
        key=lambda case: (len(cases[case].knobs) or math.inf, case.value),
    )
    production = _within(cases, ProfileCase.A5)
    if not failing and (production is not False or len(passing) < len(singles)):
        return []
    smallest = failing[0] if failing else None
    return [
        Finding(
            source_class=UNRESOLVED,
            subclass="interaction",
            rule=INTERACTION,
            evidence={
                "smallest_failing_pair": smallest.value if smallest else None,
                "classes": [item.value for item in smallest.classes] if smallest else [],
                "failing_pairs": [case.value for case in failing],
                "pairs_not_judged": [case.value for case in pairs if _within(cases, case) is None],
                "cases": _numbers(cases, (ProfileCase.A0, *singles, *pairs, ProfileCase.A5)),
            },
            advice=_interaction_advice(cases, smallest, pairs),
            confidence="high" if smallest else "medium",
        )
    ]


def _interaction_advice(cases: Cases, smallest: ProfileCase | None, pairs: Sequence[ProfileCase]) -> str:
    if smallest is not None:
        left, right = (item.value for item in smallest.classes)
        knobs = ", ".join(cases[smallest].knobs) or "knobs not stated"
        return (
            f"no class alone violates the contract, {left} and {right} together do: an interaction; the smallest "
            f"failing pair is {smallest.value} ({knobs})"
        )
    text = "no class alone violates the contract, full production does: an interaction"
    open_pairs = [case.value for case in pairs if _within(cases, case) is None]
    if open_pairs:
        return f"{text}; find the smallest failing pair: run {', '.join(open_pairs)}"
    return f"{text} of more than two classes, or a class outside A1 to A3 (logical, execution) alone or with another"


def _not_numerical(cases: Cases) -> Finding:
    return Finding(
        source_class=NONE,
        subclass=ALGORITHMIC,
        rule=NOT_NUMERICAL,
        evidence={"cases": _numbers(cases, tuple(ProfileCase)), "collapsed": True},
        advice="every case of the profile is within the contract and training still collapses: it is not numerical "
        "drift; look at the algorithm, the reward, the data and KL control",
        confidence="medium",
    )


def _incomplete(cases: Cases, unknown: Sequence[ProfileCase]) -> Finding:
    missing = [case.value for case in unknown if case not in cases]
    unjudged = [f"{case.value} ({cases[case].status.value})" for case in unknown if case in cases]
    parts = [f"run {', '.join(missing)}"] if missing else []
    if unjudged:
        parts.append(f"not judged on the baseline's row, mend and run again: {', '.join(unjudged)}")
    return Finding(
        source_class=UNRESOLVED,
        subclass="cannot-tell",
        rule=INCOMPLETE,
        evidence={"missing": missing, "not_judged": _numbers(cases, unknown)},
        advice="the profile cannot be read to its end: " + "; ".join(parts),
    )
