"""Reading an ablation profile."""

import itertools
import json

import pytest

from xcfg.analyzer.ablation import read_ablation
from xcfg.analyzer.profile import PAIRS, SINGLES, AblationOutcome, ProfileCase
from xcfg.model.codec import unstructure
from xcfg.model.knob import SourceClass
from xcfg.model.status import Status

A0, A1, A2, A3, AR, AP, RP, A5 = ProfileCase


def outcome(within, *, knobs=(), worse=None, status=None):
    """``within`` the baseline's row or not; None is a case that was not judged."""
    if within is None:
        return AblationOutcome(status=status or Status.INVALID_PROVENANCE, reason="fallen back")
    return AblationOutcome(
        status=status or (Status.PASS if within else Status.FAIL),
        within_baseline_row=within,
        max_abs_dlogp=0.1 if within else 2.0,
        threshold=0.25,
        knobs=knobs,
        worse_downstream=worse or {},
    )


def profile(**failing):
    """All cases judged and within, but for those named ``A1=False``."""
    names = {"AR": AR, "AP": AP, "RP": RP}
    changed = {names.get(name) or ProfileCase(name): value for name, value in failing.items()}
    values = {**dict.fromkeys(ProfileCase, True), **changed}
    return {case: outcome(value) for case, value in values.items() if value != "absent"}


def rules(found):
    return [finding.rule for finding in found]


@pytest.mark.parametrize("others", [{}, {"A1": False}, {"A5": False, "AR": False}, {"A5": None}])
def test_a_failing_reference_silences_everything_else(others):
    (found,) = read_ablation(profile(A0=False, **others), collapsed=True)
    assert (found.rule, found.source_class) == ("ablation_base_path_first", "unresolved")
    assert "base scoring path" in found.advice
    assert found.evidence["cases"]["A0"]["max_abs_dlogp"] == 2.0


@pytest.mark.parametrize("value", [None, "absent"])
def test_without_a_judged_reference_nothing_can_be_told(value):
    (found,) = read_ablation(profile(A0=value, A1=False, A5=False), collapsed=True)
    assert found.rule == "ablation_cannot_tell"
    assert found.evidence["missing"] == (("A0",) if value == "absent" else ())
    assert "A0" in found.advice


@pytest.mark.parametrize(("name", "source"), [("A1", "arithmetic"), ("A2", "reduction"), ("A3", "representation")])
def test_a_failing_single_is_sufficient(name, source):
    (found,) = read_ablation(profile(**{name: False}, A5=False))
    assert (found.rule, found.source_class, found.confidence) == ("ablation_class_sufficient", source, "high")
    assert found.evidence["case"] == name
    assert set(found.evidence["cases"]) == {"A0", name, "A5"}


def test_pairs_are_not_asked_for_where_a_single_explains():
    cases = profile(A1=False, A3=False, A5=False, AR="absent", AP="absent", RP="absent")
    assert [finding.source_class for finding in read_ablation(cases)] == ["arithmetic", "representation"]


def test_a_failing_single_under_a_passing_production_is_cancelled_there():
    (found,) = read_ablation(profile(A2=False))
    assert found.confidence == "medium"
    assert "cancelled" in found.advice


def test_the_smallest_failing_pair_is_that_of_fewest_knobs():
    cases = profile(A5=False)
    cases[AR] = outcome(False, knobs=("a", "b", "c"))
    cases[RP] = outcome(False, knobs=("d", "e"))
    cases[AP] = outcome(False)  # knobs not stated
    (found,) = read_ablation(cases)
    assert (found.rule, found.subclass, found.confidence) == ("ablation_interaction", "interaction", "high")
    assert found.evidence["smallest_failing_pair"] == "A4:reduction+representation"
    assert found.evidence["classes"] == ("reduction", "representation")
    assert found.evidence["failing_pairs"] == tuple(case.value for case in (RP, AR, AP))
    assert "d, e" in found.advice


def test_a_failing_pair_under_a_passing_production_is_an_interaction_as_well():
    (found,) = read_ablation(profile(AP=False))
    assert found.evidence["smallest_failing_pair"] == "A4:arithmetic+representation"


def test_production_fails_alone():
    whole = read_ablation(profile(A5=False))
    assert rules(whole) == ["ablation_interaction"]
    assert whole[0].evidence["smallest_failing_pair"] is None
    assert "more than two classes" in whole[0].advice
    open_, incomplete = read_ablation(profile(A5=False, AR="absent", RP=None))
    assert open_.rule == "ablation_interaction"
    assert "run A4:arithmetic+reduction, A4:reduction+representation" in open_.advice
    assert incomplete.evidence["missing"] == ("A4:arithmetic+reduction",)
    assert set(incomplete.evidence["not_judged"]) == {"A4:reduction+representation"}


def test_an_unknown_single_is_never_read_as_passing():
    """A1 unknown: production may fail by A1 alone, and so may each pair with A1."""
    for cases in (profile(A1="absent", A5=False), profile(A1=None, A5=False, AR=False)):
        (found,) = read_ablation(cases)
        assert found.rule == "ablation_cannot_tell"
        assert "A1" in found.advice
    found, incomplete = read_ablation(profile(A1="absent", A5=False, RP=False))
    assert found.evidence["smallest_failing_pair"] == "A4:reduction+representation"
    assert incomplete.evidence["missing"] == ("A1",)


def test_a_single_that_passes_with_a_worse_effect_is_sensitive():
    cases = profile()
    cases[A3] = outcome(True, worse={"eval/math": {"reference": 0.5, "case": 0.25}})
    (found,) = read_ablation(cases, collapsed=True)
    assert (found.rule, found.source_class) == ("ablation_behaviourally_sensitive", "representation")
    assert found.evidence["worse_downstream"]["eval/math"] == {"reference": 0.5, "case": 0.25}
    assert "eval/math" in found.advice


def test_a_failing_single_with_a_worse_effect_is_sufficient_only():
    cases = profile(A5=False)
    cases[A3] = outcome(False, worse={"eval/math": {"reference": 0.5, "case": 0.25}})
    assert rules(read_ablation(cases)) == ["ablation_class_sufficient"]


def test_all_clean_and_training_collapses():
    (found,) = read_ablation(profile(), collapsed=True)
    assert (found.rule, found.source_class, found.subclass) == ("ablation_not_numerical", "none", "algorithmic")
    unexpanded = profile(AR="absent", AP="absent", RP="absent")
    assert rules(read_ablation(unexpanded, collapsed=True)) == ["ablation_not_numerical"]
    assert read_ablation(profile(), collapsed=False) == ()
    assert read_ablation(profile()) == ()


@pytest.mark.parametrize("name", ["A1", "A2", "A3", "A5"])
@pytest.mark.parametrize("value", [None, "absent"])
def test_not_numerical_is_never_said_of_an_incomplete_profile(name, value):
    (found,) = read_ablation(profile(**{name: value}), collapsed=True)
    assert found.rule == "ablation_cannot_tell"
    assert name in found.advice


def test_a_pair_that_was_not_judged_keeps_the_profile_open():
    assert rules(read_ablation(profile(AR=None), collapsed=True)) == ["ablation_cannot_tell"]


def test_an_experiment_without_a_class_has_no_case_for_it():
    have = {case: value for case, value in profile().items() if case in (A0, A1, A2, AR, A5)}
    assert rules(read_ablation(have, profile=have, collapsed=True)) == ["ablation_not_numerical"]
    assert rules(read_ablation(have, collapsed=True)) == ["ablation_cannot_tell"]


def test_the_row_of_the_baseline_decides_and_not_the_case_s_own():
    """A0 in float32 fails its own narrow row and is within the baseline's."""
    cases = profile(A5=False)
    cases[A0] = outcome(True, status=Status.FAIL)
    cases[A1] = outcome(False, status=Status.PASS)
    assert rules(read_ablation(cases)) == ["ablation_class_sufficient"]
    no_row = {**profile(), A0: AblationOutcome(status=Status.PASS, max_abs_dlogp=0.0)}
    assert rules(read_ablation(no_row)) == ["ablation_cannot_tell"]


@pytest.mark.parametrize("status", [status for status in Status if not status.judged])
def test_every_status_that_is_not_judged_is_unknown(status):
    cases = {**profile(), A2: outcome(None, status=status)}
    (found,) = read_ablation(cases, collapsed=True)
    assert found.evidence["not_judged"]["A2"]["status"] == status.value


def test_every_profile_is_read_without_a_contradiction():
    """All 3**8 profiles of within, not within and unknown, against the reading rules written as sets."""
    for values in itertools.product((True, False, None), repeat=len(ProfileCase)):
        known = dict(zip(ProfileCase, values, strict=True))
        found = read_ablation({case: outcome(value) for case, value in known.items()}, collapsed=True)
        names = set(rules(found))
        assert found, known
        if known[A0] is not True:
            assert names == {"ablation_base_path_first" if known[A0] is False else "ablation_cannot_tell"}
            continue
        failing = {case for case in SINGLES if known[case] is False}
        passing = {case for case in SINGLES if known[case]}
        pairs = {case for case in PAIRS if known[case] is False and set(case.singles) <= passing}
        assert ("ablation_class_sufficient" in names) == bool(failing)
        interacts = not failing and (bool(pairs) or (passing == set(SINGLES) and known[A5] is False))
        assert ("ablation_interaction" in names) == interacts
        assert ("ablation_not_numerical" in names) == all(known.values())
        assert "ablation_base_path_first" not in names
        if any(known[case] is None for case in (*SINGLES, A5)):
            assert "ablation_cannot_tell" in names
        for finding in found:
            assert finding.evidence and finding.advice


def test_classes_of_the_cases():
    assert A0.classes == A5.classes == ()
    assert A2.classes == (SourceClass.REDUCTION,)
    assert AP.classes == (SourceClass.ARITHMETIC, SourceClass.REPRESENTATION)
    assert {frozenset(pair.singles) for pair in PAIRS} == {frozenset(two) for two in itertools.combinations(SINGLES, 2)}


def test_findings_are_plain_json():
    for cases in (profile(A5=False), profile(A1=False), profile(A0=None), profile(AR=False)):
        for finding in read_ablation(cases, collapsed=True):
            json.dumps(unstructure(finding), allow_nan=False)
