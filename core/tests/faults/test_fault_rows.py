"""Every fault, brought about with real processes: its status, its exit code, what is kept, what the message says."""

import os
from importlib.util import find_spec

import pytest

from . import rows_artifacts, rows_folder, rows_machine, rows_processes
from .mounting import can_mount
from .place import Place
from .table import RENEW, Fault, line, observe, page_lines, write_page

FAULTS = (*rows_processes.ROWS, *rows_artifacts.ROWS, *rows_machine.ROWS, *rows_folder.ROWS)
pytestmark = pytest.mark.timeout(900)


def _able(fault: Fault) -> bool:
    return {"": True, "mount": can_mount()}.get(fault.needs, find_spec(fault.needs or "os") is not None)


def _row(fault: Fault, *, full: bool):
    marks = [pytest.mark.full] if full else []
    return pytest.param(fault, id=fault.name.replace(" ", "-"), marks=marks)


def _rows():
    """The first row of each outcome belongs to the quick tier, the others and the long ones to the full one."""
    seen: set[tuple[str, int, str]] = set()
    for fault in FAULTS:
        outcome = (fault.status, fault.code, fault.kept)
        yield _row(fault, full=fault.full or outcome in seen)
        seen.add(outcome)


@pytest.mark.parametrize("fault", list(_rows()))
def test_each_fault(fault: Fault, tmp_path) -> None:
    if not _able(fault):
        pytest.skip(f"this machine has no {fault.needs}")
    found = observe(fault, Place.make(tmp_path / "place"))
    assert (found.status, found.code, found.kept) == (fault.status, fault.code, fault.kept), found
    assert not found.message.startswith("(otherwise"), found.message
    assert bool(found.message) is bool(fault.says), "a row has a message to show or none"
    if os.environ.get(RENEW):
        write_page({fault.name: line(fault, found)}, [item.name for item in FAULTS])
    assert page_lines().get(fault.name) == line(fault, found), f"write the page again: {RENEW}=1"


@pytest.mark.skipif(bool(os.environ.get(RENEW)), reason="the page is being written")
def test_the_page_has_these_rows_and_no_other() -> None:
    assert list(page_lines()) == [fault.name for fault in FAULTS]


def test_names_differ() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
