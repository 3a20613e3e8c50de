"""What ``search`` and ``explain`` start from: the space of an experiment, its problem, what a folder knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.analyzer.search.problem import Problem
from xcfg.cli.search.executor import Executor
from xcfg.cli.search.known import Known, known
from xcfg.cli.search.problem import problem_of
from xcfg.model.tolerance import ToleranceContract
from xcfg.planner.alignment_space import AlignmentSpace

if TYPE_CHECKING:
    from xcfg.model.experiment import Experiment
    from xcfg.model.json import Json
    from xcfg.plugin.registry import Registry
    from xcfg.runner.events import Event
    from xcfg.runner.options import RunOptions


@frozen(kw_only=True)
class Setting:
    """One experiment in one folder."""

    space: AlignmentSpace
    problem: Problem
    contract: ToleranceContract
    known: Known
    folder: Path
    registry: Registry

    @classmethod
    def of(
        cls, experiment: Experiment, root: Path, folder: Path, registry: Registry, tokens: Json | None = None
    ) -> Setting:
        """``tokens`` is the declared token source of a folder's plan, None to read the experiment's files."""
        space = AlignmentSpace.of(experiment, root, registry, tokens)
        contract = registry.contract(experiment.contract, root=root)
        return cls(
            space=space,
            problem=problem_of(space, registry),
            contract=contract,
            known=known(space, folder, contract),
            folder=folder,
            registry=registry,
        )

    def executor(self, options: RunOptions, on_event: Callable[[Event], None]) -> Executor:
        """An executor into the folder."""
        return Executor.of(
            self.known,
            space=self.space,
            problem=self.problem,
            registry=self.registry,
            folder=self.folder,
            options=options,
            contract=self.contract,
            on_event=on_event,
        )
