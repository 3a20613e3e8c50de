"""The kit fails every mutant and passes the original it wraps; the table says which check finds which.

That the check failed for the mutant's own fault, and not because something else went wrong, is told by what it said.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from xcfg.testing import mutants

from .said import LAUNCHED_SAID, SAID

HERE = Path(__file__).parent

FOUND_BY = {
    "OffByOne": "test_labels_are_not_shifted",
    "MaskIgnored": "test_tokens_masks_and_positions_are_the_batchs",
    "RowsDropped": "test_every_sequence_comes_back_once",
    "NanSwallowed": "test_nan_is_not_swallowed",
    "StateMutated": "test_state_is_unchanged",
    "PaddingMixedUp": "test_tokens_masks_and_positions_are_the_batchs",
    "StaleCache": "test_order_of_sequences_does_not_matter",
    "OrderLost": "test_logprobs_agree_with_the_oracle",
    "RankMissing": "test_says_what_the_numbers_mean",
    "MaskedZeroed": "test_masks_change_no_logprob",
    "StoredCoarsely": "test_logprobs_agree_with_the_oracle",
    "EmptyPromptSwallowed": "test_an_empty_prompt_is_refused",
    "IdentityHardCoded": "test_identity_is_the_checkpoints",
    "SeedIgnored": "test_samples_are_reproduced_by_scoring",
    "SilentFallback": "test_read_back_comes_from_the_live_object",
    "VariableIgnored": "test_read_back_sees_what_was_applied",
    "ReadBackHardCoded": "test_read_back_sees_what_was_applied",
    "ReadBackStale": "test_read_back_sees_what_was_applied",
    "SectionMixedUp": "test_apply_writes_into_the_section_of_its_lifecycle",
    "ValueReplaced": "test_apply_returns_what_it_materialized",
    "NeverRefuses": "test_probe_refuses_with_a_reason",
    "BackendNanSwallowed": "test_nan_stays_nan_in_its_row",
    "BackendTargetsShifted": "test_agrees_with_float64",
    "BackendInPlace": "test_leaves_its_input_alone",
    "BackendOverflows": "test_agrees_with_float64",
    "BackendMaskSwallowed": "test_excluded_columns_have_no_weight",
    "BackendWide": "test_result_is_float32_of_one_value_a_row",
    "BackendStale": "test_one_binding_serves_many_inputs",
    "BackendUnsteady": "test_same_input_gives_the_same_bits",
    "BackendFallsBack": "test_identifies_what_is_bound",
    "BackendUnnamed": "test_identifies_what_is_bound",
    "BackendTakesAll": "test_probe",
    "ClaimsEverything": "test_it_alone_claims_its_files",
    "RecordsSorted": "test_reads_what_the_rows_say",
    "DuplicatesDropped": "test_rows_that_come_again_are_read_again",
    "BadRowsSkipped": "test_a_missing_field_is_refused",
    "NullIsCertainty": "test_what_is_no_number_stays_none",
    "InfinityClipped": "test_what_is_no_number_stays_none",
    "LengthsRepaired": "test_lengths_are_not_repaired",
    "PaddingGuessed": "test_reads_what_the_rows_say",
    "LogprobsShifted": "test_reads_what_the_rows_say",
    "MaskLeftOut": "test_reads_what_the_rows_say",
    "SidesMixedUp": "test_the_sides_are_told_apart",
    "AssumptionsUnsaid": "test_reads_what_the_rows_say",
    "PlaceLost": "test_says_where_each_record_stands",
    "WholeFileRead": "test_reads_one_row_at_a_time",
    "RowsChanged": "test_leaves_the_rows_alone",
}
LAUNCHED_FOUND_BY = {
    "NoSlots": "test_is_an_executor",
    "VariablesIgnored": "test_a_grid_is_the_same_bit_for_bit",
    "ResultsAtTheEnd": "test_results_come_while_the_launch_runs",
    "ExitCodeLost": "test_the_exit_code_is_told",
    "FailureIsALoss": "test_the_exit_code_is_told",
    "StopIgnored": "test_a_stop_ends_everything",
    "ProcessesLeft": "test_a_stop_ends_everything",
    "LimitsIgnored": "test_limits_are_kept",
    "LossIsAFailure": "test_a_lost_machine_is_told_apart",
}

ORIGINALS = ("Original", "OriginalMaterializer", "OriginalBackend", "OriginalImporter", "OriginalDump")
Outcomes = dict[str, tuple[set[str], dict[str, list[str]]]]


def run(folder: Path, suite: str, *chosen: str) -> Outcomes:
    """What becomes of a suite: class name -> (tests that passed, those that failed with what they said).

    Parameters are left out. A fixture that fails is no finding.
    """
    shutil.copy(HERE / suite, folder / "test_suite.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=out.xml", "test_suite.py"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*command, *chosen], cwd=folder, env=alone, capture_output=True, text=True, check=False)
    assert (folder / "out.xml").is_file(), done.stdout + done.stderr
    found: Outcomes = {}
    for case in ElementTree.parse(folder / "out.xml").iter("testcase"):
        name, test = case.get("classname", "").rpartition(".Test")[2], case.get("name", "").partition("[")[0]
        passed, failed = found.setdefault(name, (set(), {}))
        error, failure = case.find("error"), case.find("failure")
        assert error is None, f"{name}.{test}: {error.get('message')}"
        if failure is not None:
            failed.setdefault(test, []).append(failure.get("message", ""))
        elif case.find("skipped") is None:
            passed.add(test)
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return run(tmp_path_factory.mktemp("kit"), "kit_suite.py")


@pytest.mark.parametrize("original", ORIGINALS)
def test_the_original_passes_everything(outcomes: Outcomes, original: str) -> None:
    passed, failed = outcomes[original]
    assert len(passed) > 5
    assert failed == {}


@pytest.mark.parametrize(("mutant", "test"), FOUND_BY.items())
def test_the_mutant_is_found(outcomes: Outcomes, mutant: str, test: str) -> None:
    said = outcomes[mutant][1].get(test, [])
    assert any(re.search(SAID[mutant], text) for text in said), said


def test_the_check_that_finds_a_mutant_passes_its_original(outcomes: Outcomes) -> None:
    """It was not skipped there: a check of what the original does not do finds nothing."""
    passed = set().union(*(outcomes[original][0] for original in ORIGINALS))
    assert set(FOUND_BY.values()) <= passed


def test_no_mutant_is_forgotten(outcomes: Outcomes) -> None:
    known = (
        *mutants.SCORER_MUTANTS,
        *mutants.MATERIALIZER_MUTANTS,
        *mutants.BACKEND_MUTANTS,
        *mutants.IMPORTER_MUTANTS,
    )
    assert {cls.__name__ for cls in known} == set(FOUND_BY) == set(SAID)
    assert set(FOUND_BY) == {name for name in outcomes if not name.startswith("Original")}
    assert {cls.__name__ for cls in mutants.EXECUTOR_MUTANTS} == set(LAUNCHED_FOUND_BY) == set(LAUNCHED_SAID)


@pytest.mark.full
@pytest.mark.parametrize(("mutant", "test"), LAUNCHED_FOUND_BY.items())
def test_the_executor_is_found(tmp_path: Path, mutant: str, test: str) -> None:
    """The check that finds it alone: each launches processes."""
    chosen = run(tmp_path, "launched_suite.py", "-k", f"(Test{mutant} or TestOriginalExecutor) and {test}")
    assert chosen["OriginalExecutor"] == ({test}, {})
    passed, failed = chosen[mutant]
    assert passed == set() and failed.keys() == {test}
    assert re.search(LAUNCHED_SAID[mutant], failed[test][0]), failed
