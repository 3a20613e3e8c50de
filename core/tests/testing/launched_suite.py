"""Executors and every mutant of them as classes of the kit; test_mutants.py has pytest run this file."""

from __future__ import annotations

from xcfg.runner.local import LocalExecutor
from xcfg.testing import ExecutorTests, mutants
from xcfg.testing.away import AWAY, AwayExecutor


class TestOriginalExecutor(ExecutorTests):
    descriptor = AWAY

    def make_executor(self):
        return AwayExecutor({})

    def lose_machine(self, executor, world):
        getattr(executor, "inner", executor).lose()


ON_THIS_MACHINE = ("VariablesIgnored", "LimitsIgnored")
"""What is read from the job where the processes are started, and not from its file."""


def spoilt(mutant):
    inner = LocalExecutor if mutant.__name__ in ON_THIS_MACHINE else AwayExecutor
    members = {"make_executor": lambda self: mutant(inner({})), "patience": 15.0, "__module__": __name__}
    globals()[f"Test{mutant.__name__}"] = type(f"Test{mutant.__name__}", (TestOriginalExecutor,), members)


for mutant in mutants.EXECUTOR_MUTANTS:
    spoilt(mutant)
