"""The table of faults: what a row says, what was observed, and the page that shows it.

The page is ``docs/reference/faults.md``. A test fails where a line of it differs from what was observed; to write the
lines again run ``XCFG_RENEW_FAULTS=1 python -m pytest core/tests/faults/test_fault_rows.py`` in one process and read
the difference. A row that is not run, because it is left out or skipped, keeps the line it has.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from .place import Done, Place

PAGE = Path(__file__).parents[3] / "docs/reference/faults.md"
RENEW = "XCFG_RENEW_FAULTS"
HEADINGS = ("fault", "what is done", "status", "exit code", "attempts in the folder", "what the message says")


@frozen(kw_only=True)
class Fault:
    """One row. ``do`` brings the fault about and returns the command that the row is about.

    ``says`` is a pattern for the stable part of the message, which the page shows; nothing where there is none.
    ``needs`` names a module or an ability of the machine without which the row is skipped; ``full`` rows are long.
    """

    name: str
    how: str
    do: Callable[[Place], Done]
    status: str
    code: int
    kept: str
    says: str = ""
    needs: str = ""
    full: bool = False


@frozen(kw_only=True)
class Observed:
    """What happened: status and exit code of the command, attempts in the folder at the end, and its message."""

    status: str
    code: int
    kept: str
    message: str


def observe(fault: Fault, place: Place) -> Observed:
    """Bring a fault about. Whatever it is, no process may be left."""
    done = fault.do(place)
    assert place.left() == []
    message = _plain(done.message, place)
    found = re.search(fault.says, message) if fault.says else None
    return Observed(
        status=str(done.document.get("status", "none")),
        code=done.code,
        kept=place.kept(),
        message=found.group(0) if found else message and f"(otherwise: {message})",
    )


def _plain(message: str, place: Place) -> str:
    """The message without what differs from one machine and run to the next."""
    here = message.replace(f"{place.root}/", "").replace(str(place.root), ".")
    return re.sub(r"\b[0-9a-f]{64}\b", "SHA-256", re.sub(r"\b[0-9a-f]{16}\b", "SIDE", here))


def line(fault: Fault, observed: Observed) -> str:
    """The row as the page has it."""
    message = f"`{observed.message}`" if observed.message else ""
    cells = (fault.name, fault.how, f"`{observed.status}`", str(observed.code), observed.kept, message)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def page_lines() -> dict[str, str]:
    """The rows of the page by the fault's name."""
    rows = [item for item in PAGE.read_text().splitlines() if item.startswith("| ")]
    return {row.split(" | ")[0].removeprefix("| "): row for row in rows if not row.startswith(f"| {HEADINGS[0]} |")}


def write_page(lines: Mapping[str, str], names: list[str]) -> None:
    """Replace the page's table; a row that was not observed now keeps the line it has."""
    known = {**page_lines(), **lines}
    head = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    table = "\n".join([*head, *(known[name] for name in names if name in known)])
    before, _, rest = PAGE.read_text().partition("<!-- table -->")
    after = rest.partition("<!-- end -->")[2]
    PAGE.write_text(f"{before}<!-- table -->\n\n{table}\n\n<!-- end -->{after}")
