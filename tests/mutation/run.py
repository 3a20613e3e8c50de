"""Mutation run over the comparator: is there a test that fails for every small change to its code?

mutmut changes one expression at a time (a sign, a comparison, a bound, a name, an argument) and runs the tests that
reach the changed function. A change that no test notices survives: a test is missing, or the change means nothing.
Those of the second kind stand in ``survivors.txt``, a line each::

    mutant | changed code | reason

Run it by hand for the whole package, or for some modules while a test is written::

    python tests/mutation/run.py
    python tests/mutation/run.py totals recorded.join --folder /tmp/mutation

It works on a copy in ``--folder`` (a temporary one unless given, then removed); with a folder that is kept, the next
run repeats only what changed. Exit status 1 where a survivor is not in the list, where its changed code is not the one
in the list, or where a listed mutant no longer survives; only the modules that were run are held against the list.
``--write`` prints the lines of all survivors, for the list.
"""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).parent / "survivors.txt"
PACKAGE = "xcfg.comparator"
KILLED = {1, 3}
TIMED_OUT = {24, 36, 152, 255, -24, -9}
"""Exit statuses of mutants whose tests ran out of time: noticed as well."""
CONFIG = """\
[tool.mutmut]
source_paths = ["src/"]
only_mutate = ["src/xcfg/comparator/*"]
do_not_mutate_patterns = ['^\\s*advice=']  # what a finding advises is prose
pytest_add_cli_args = ["--hypothesis-profile=mutation", "-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = ["tests/comparator", "tests/api"]
use_git_change_detection = false

[tool.pytest.ini_options]
addopts = "--import-mode=importlib --strict-markers"
markers = ["full: belongs to the full tier (nox -s full)"]
"""

SLOW = ("test_recorded_scale.py", "test_api_alone.py")
"""Tests of size and memory: they would be run again for each of thousands of mutants."""

Mutants = dict[str, tuple[int | None, str]]
"""Exit status of the tests and changed code of each mutant by name, ``module.function__mutmut_n``."""


def prepare(folder: Path) -> None:
    """Core's sources, the comparator's tests and those of the Python API, where mutmut looks for them."""
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis", *SLOW)
    copied = {"src": "core/src", "tests/comparator": "core/tests/comparator", "tests/api": "core/tests/api"}
    for name, source in copied.items():
        for held in (folder / name, folder / "mutants" / name) if name != "src" else (folder / name,):
            shutil.rmtree(held, ignore_errors=True)
        shutil.copytree(ROOT / source, folder / name, ignore=ignored)
    (folder / "pyproject.toml").write_text(CONFIG, encoding="utf-8")


def mutate(folder: Path, modules: list[str], children: int) -> None:
    """Run mutmut. Raises RuntimeError, with the end of what it printed, where it does not come to its end."""
    patterns = [f"{PACKAGE}.{module}.x*" for module in modules]
    command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", str(children), *patterns]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mutmut ended with status {done.returncode}:\n{done.stdout[-5000:]}{done.stderr[-5000:]}")


def read(folder: Path, modules: list[str]) -> dict[str, Mutants]:
    """The mutants of each module, in the order of the code."""
    base = folder / "mutants" / "src" / Path(*PACKAGE.split("."))
    found: dict[str, Mutants] = {}
    for meta in sorted(base.rglob("*.meta")):
        source = meta.with_suffix("")
        module = ".".join(source.relative_to(base).with_suffix("").parts)
        if modules and module not in modules:
            continue
        status = json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
        spans = json.loads(source.with_name(source.name + ".spans").read_text(encoding="utf-8"))["spans"]
        lines = source.read_text(encoding="utf-8").splitlines()
        found[module] = {
            name.removeprefix(PACKAGE + "."): (code, _changed(lines, spans, name.rpartition(".")[2]))
            for name, code in status.items()
        }
    return found


def _changed(lines: list[str], spans: dict[str, list[int]], name: str) -> str:
    """The lines of a mutant that differ from the original, on one line."""
    original = name.rpartition("__mutmut_")[0] + "__mutmut_orig"
    before, after = (
        [line.replace(which, "") for line in lines[spans[which][0] - 1 : spans[which][1]]] for which in (original, name)
    )
    marks = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
    gone = " ".join(line[1:].strip() for line in marks if line[0] == "-")
    come = " ".join(line[1:].strip() for line in marks if line[0] == "+")
    return f"{gone} -> {come}".replace("|", "\N{BROKEN BAR}")


def known() -> dict[str, tuple[str, str]]:
    """The listed survivors: changed code and reason by name. Blank lines and lines that start with # are comments."""
    found = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, code, reason = (part.strip() for part in line.split(" | "))
            found[name] = code, reason
    return found


def faults(mutants: Mutants, listed: dict[str, tuple[str, str]]) -> list[str]:
    """What keeps a module's mutants and the list from agreeing."""
    survivors = {name: code for name, (status, code) in mutants.items() if status not in KILLED | TIMED_OUT}
    found = []
    for name, code in survivors.items():
        if name not in listed:
            found.append(f"not explained: {name} | {code}")
        elif listed[name][0] != code:
            found.append(f"listed with other code: {name} | {code}")
    return found + [f"listed, and does not survive: {name}" for name in listed if name not in survivors]


def report(found: dict[str, Mutants], listed: dict[str, tuple[str, str]]) -> int:
    """Print a table of the modules and every fault; the number of faults."""
    print(f"{'module':28}{'mutants':>8}{'killed':>8}{'timeout':>8}{'explained':>10}{'left':>6}")
    total: Counter[str] = Counter()
    wrong: list[str] = []
    for module, mutants in found.items():
        mine = {name: item for name, item in listed.items() if name.rpartition(".")[0] == module}
        survived = {name for name, (status, _) in mutants.items() if status not in KILLED | TIMED_OUT}
        row = {
            "mutants": len(mutants),
            "killed": sum(status in KILLED for status, _ in mutants.values()),
            "timeout": sum(status in TIMED_OUT for status, _ in mutants.values()),
            "explained": len(survived & mine.keys()),
            "left": len(survived - mine.keys()),
        }
        total.update(row)
        wrong += faults(mutants, mine)
        _line(module, row)
    _line("all", total)
    judged = total["mutants"] - total["explained"]
    if judged:
        score = 100.0 * (total["killed"] + total["timeout"]) / judged
        print(f"score: {score:.2f} % of {judged} mutants that mean something")
    print("\n".join(wrong))
    return len(wrong)


def _line(module: str, row: dict[str, int]) -> None:
    cells = f"{row['mutants']:8}{row['killed']:8}{row['timeout']:8}{row['explained']:10}{row['left']:6}"
    print(f"{module:28}{cells}")


def main() -> int:
    """Run, report, compare with the list."""
    parser = argparse.ArgumentParser(description="Mutation run over the comparator.")
    parser.add_argument("modules", nargs="*", help="modules below xcfg.comparator, as totals or recorded.join (all)")
    parser.add_argument("--folder", type=Path, help="where to work; kept (a temporary folder, removed)")
    parser.add_argument("--children", type=int, default=2, help="processes at a time (2)")
    parser.add_argument("--write", action="store_true", help="print the lines of all survivors for the list")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xcfg-mutation-") as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder)
        mutate(folder, chosen.modules, chosen.children)
        found = read(folder, chosen.modules)
    listed = known()
    if chosen.write:
        for name, (status, code) in ((name, item) for mutants in found.values() for name, item in mutants.items()):
            if status not in KILLED | TIMED_OUT:
                print(f"{name} | {code} | {listed.get(name, ('', ''))[1]}")
    return 1 if report(found, listed) else 0


if __name__ == "__main__":
    sys.exit(main())
