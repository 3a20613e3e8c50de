"""What ``search`` and ``explain`` start from: the space of an experiment, its problem, what a folder knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.analyzer.search.problem import Problem
from xcfg.cli.search.executor import Executor
from xcfg.cli.search.known import Known, Now, known
from xcfg.cli.search.problem import problem_of
from xcfg.model.tolerance import ToleranceContract
from xcfg.planner.alignment_space import AlignmentSpace
from xcfg.runner.artifacts import load_plan
from xcfg.runner.belongs import check_belongs

if TYPE_CHECKING:
    from xcfg.model.experiment import Experiment
    from xcfg.plugin.executor import Executor as Place
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
    def of(cls, experiment: Experiment, root: Path, folder: Path, registry: Registry) -> Setting:
        """What a search in ``folder`` starts from: only what a resumed run would take over.

        Raises as :func:`xcfg.runner.belongs.check_belongs` does.
        """
        space = AlignmentSpace.of(experiment, root, registry)
        contract = registry.contract(experiment.contract, root=root)
        held = Known()
        if folder.exists():
            checkpoints = check_belongs(space.plan([space.production]), registry, folder)
            held = known(space, folder, contract, Now(registry=registry, checkpoints=checkpoints))
        return cls._of(space, contract, held, folder, registry)

    @classmethod
    def stored(cls, folder: Path, registry: Registry) -> Setting:
        """What an executed run is explained from: its own plan and everything it holds."""
        plan = load_plan(folder)
        root = Path(plan.root)
        space = AlignmentSpace.of(plan.experiment, root, registry, plan.tokens)
        contract = registry.contract(plan.experiment.contract, root=root)
        return cls._of(space, contract, known(space, folder, contract), folder, registry)

    @classmethod
    def _of(
        cls, space: AlignmentSpace, contract: ToleranceContract, held: Known, folder: Path, registry: Registry
    ) -> Setting:
        problem = problem_of(space, registry)
        return cls(space=space, problem=problem, contract=contract, known=held, folder=folder, registry=registry)

    def executor(self, options: RunOptions, on_event: Callable[[Event], None], place: Place | None = None) -> Executor:
        """An executor into the folder, whose engines run at ``place``, by default on this machine."""
        return Executor.of(
            self.known,
            space=self.space,
            problem=self.problem,
            registry=self.registry,
            folder=self.folder,
            options=options,
            contract=self.contract,
            on_event=on_event,
            place=place,
        )
