"""How an experiment is executed is refused by name inside its file."""

import pytest

from xcfg.planner.problem import Problem
from xcfg.planner.refused import explained

OPTIONS = {"only": "--only", "limit": "--limit", "no-share": "--no-share", "share": "--no-share", "repeat": "--repeat",
           "json_lines": "--json-lines", "dry_run": "--dry-run"}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_a_run_is_named_with_the_option(name):
    found = explained(Problem(path=(name,), message="unknown field", at_key=True))
    assert "is an option of `xcfg run`" in found.message and OPTIONS[name] in found.hint
