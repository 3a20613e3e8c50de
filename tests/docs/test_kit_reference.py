"""The reference of the conformance kit has every check and every mutant, in the section of its class."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from xcfg import testing
from xcfg.testing import mutants

from .snippets import ROOT

PAGE = ROOT / "docs/reference/conformance-kit.md"
KERNEL = ROOT / "docs/how-to/write-a-kernel.md"
TABLES = ("FOUND_BY", "LAUNCHED_FOUND_BY")
KINDS = {
    "ExecutorTests": mutants.EXECUTOR_MUTANTS,
    "ImporterTests": mutants.IMPORTER_MUTANTS,
    "KernelBackendTests": mutants.BACKEND_MUTANTS,
    "KnobTests": (),
    "MaterializerTests": mutants.MATERIALIZER_MUTANTS,
    "PluginTests": (),
    "ScorerTests": mutants.SCORER_MUTANTS,
}


def sections() -> dict[str, str]:
    """The text below each heading of the page."""
    parts = re.split(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(section: str, first: str) -> Iterator[list[str]]:
    """The cells of the table whose first heading is ``first``; nothing where the section has none."""
    lines = iter(section.splitlines())
    if any(line.startswith(f"| {first} |") for line in lines):
        next(lines)
        for line in lines:
            if not line.startswith("|"):
                return
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def checks(name: str) -> set[str]:
    return {item for item in dir(getattr(testing, name)) if item.startswith("test_")}


def found_by() -> dict[str, str]:
    """The tables of the kit's own tests: mutant to check."""
    tree = ast.parse((ROOT / "core/tests/testing/test_mutants.py").read_text())
    assigned = [item for item in tree.body if isinstance(item, ast.Assign)]
    tables = [ast.literal_eval(item.value) for item in assigned if ast.unparse(item.targets[0]) in TABLES]
    assert len(tables) == len(TABLES)
    return {mutant: check for table in tables for mutant, check in table.items()}


def test_every_class_has_a_section() -> None:
    assert sections().keys() == set(testing.__all__) == KINDS.keys()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_check_has_a_sentence(name: str) -> None:
    shown = list(rows(sections()[name], "check"))
    assert {f"`{check}`" for check in checks(name)} == {check for check, _ in shown}
    assert len(shown) == len(checks(name)) > 5
    assert all(len(sentence.split()) > 3 and sentence.endswith(".") for _, sentence in shown)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_mutant_stands_beside_the_check_that_finds_it(name: str) -> None:
    known = found_by()
    wanted = {f"`{cls.__name__}`": f"`{known[cls.__name__]}`" for cls in KINDS[name]}
    assert {mutant: check for mutant, _, check in rows(sections()[name], "mutant")} == wanted
    assert set(known) >= {cls.__name__ for cls in KINDS[name]}


def test_no_mutant_of_the_tables_is_left_out() -> None:
    shown = [mutant.strip("`") for text in sections().values() for mutant, *_ in rows(text, "mutant")]
    assert sorted(shown) == sorted(found_by())


@pytest.mark.parametrize("name", sorted(KINDS))
def test_what_a_subclass_gives_is_there(name: str) -> None:
    """Every name of the table is one of the class, and every attribute that has no value is in the table."""
    cls = getattr(testing, name)
    told = {word for names, _ in rows(sections()[name], "you give") for word in re.findall(r"`(\w+)", names)}
    assert told and all(hasattr(cls, word) or word in cls.__annotations__ for word in told)
    assert {word for word in cls.__annotations__ if not hasattr(cls, word)} <= told


def test_the_page_on_kernels_says_what_each_failure_means() -> None:
    shown = {check.strip("`") for check, _ in rows(KERNEL.read_text(), "check")}
    assert shown == checks("KernelBackendTests")
