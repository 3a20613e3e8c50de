"""Every fault, brought about with real processes: its status, its exit code, what is kept, what the message says."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec

import pytest

from . import rows_artifacts, rows_folder, rows_machine, rows_processes
from .mounting import can_mount
from .place import Place
from .table import RENEW, Fault, Observed, line, observe, page_lines, write_page

FAULTS = (*rows_processes.ROWS, *rows_artifacts.ROWS, *rows_machine.ROWS, *rows_folder.ROWS)
AT_ONCE = 3
"""Faults brought about side by side; some of them only wait."""

pytestmark = pytest.mark.timeout(900)


def _able(fault: Fault) -> bool:
    return {"": True, "mount": can_mount()}.get(fault.needs, find_spec(fault.needs or "os") is not None)


@pytest.fixture(scope="session")
def observed(request, tmp_path_factory):
    """The outcomes of the selected rows by name, as futures; at the end the page is written where that is asked."""
    chosen = {
        item.callspec.params["fault"].name: item.callspec.params["fault"]
        for item in request.session.items
        if getattr(item, "callspec", None) and "fault" in item.callspec.params
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found: dict[str, Future[Observed]] = {
            name: pool.submit(observe, fault, Place.make(tmp_path_factory.mktemp("fault") / "place"))
            for name, fault in chosen.items()
            if _able(fault)
        }
        yield found
    if os.environ.get(RENEW):
        good = {name: future.result() for name, future in found.items() if future.exception() is None}
        write_page({name: line(chosen[name], item) for name, item in good.items()}, [fault.name for fault in FAULTS])


def _row(fault: Fault):
    marks = [pytest.mark.full] if fault.full else []
    return pytest.param(fault, id=fault.name.replace(" ", "-"), marks=marks)


@pytest.mark.parametrize("fault", [_row(fault) for fault in FAULTS])
def test_each_fault(fault: Fault, observed) -> None:
    if fault.name not in observed:
        pytest.skip(f"this machine has no {fault.needs}")
    found = observed[fault.name].result()
    assert (found.status, found.code, found.kept) == (fault.status, fault.code, fault.kept), found
    assert not found.message.startswith("(otherwise"), found.message
    assert bool(found.message) is bool(fault.says), "a row has a message to show or none"
    if not os.environ.get(RENEW):
        assert page_lines().get(fault.name) == line(fault, found), f"write the page again: {RENEW}=1"


@pytest.mark.skipif(bool(os.environ.get(RENEW)), reason="the page is being written")
def test_the_page_has_these_rows_and_no_other() -> None:
    assert list(page_lines()) == [fault.name for fault in FAULTS]


def test_names_differ() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
