"""What has been executed: outcomes by point, side runs on disk, engines built."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.analyzer.search.lattice import Lattice, Point
from xcfg.analyzer.search.outcome import Observed, Outcome, Verdict, trusted
from xcfg.analyzer.search.problem import Options
from xcfg.model.scorer import Role
from xcfg.model.status import Status


class Record:
    """The memory of a search; every question follows from it alone.

    A side run takes a construction unless its configuration is on disk or differs only in request-time knobs from the
    engine that was built last on that side, which is then still warm where engines are kept. A repeat runs both sides
    anew.
    """

    def __init__(self, lattice: Lattice, options: Options) -> None:
        self._lattice = lattice
        self._options = options
        self.runs: dict[Point, list[Outcome]] = {}
        self._verdicts: dict[Point, Verdict | None] = {}
        self._disk: dict[Role, set[Point]] = {role: set() for role in Role}
        self._warm: dict[Role, Point | None] = dict.fromkeys(Role)

    def note(self, point: Point, outcome: Outcome) -> None:
        """Keep an outcome that cost nothing: it was on disk, or formed from what is."""
        runs = self.runs.setdefault(point, [])
        runs.append(outcome)
        self._verdicts[point] = trusted(runs, self._options.margin, self._options.repeats)
        if outcome.scored:
            for role in Role:
                self.put_on_disk(role, point)

    def execute(self, point: Point, outcome: Outcome) -> None:
        """Keep the outcome of an execution, and which engines it leaves warm. What is unsupported built none."""
        if outcome.status is not Status.UNSUPPORTED and self._options.keeps_engines:
            for role, engine in self._engines(point):
                self._warm[role] = engine if outcome.scored else None
        self.note(point, outcome)

    def put_on_disk(self, role: Role, point: Point) -> None:
        """Remember the side run that a point has on one side."""
        self._disk[role].add(point & self._lattice.sides[role])

    def verdict(self, point: Point) -> Verdict | None:
        """The trusted verdict; None where the point is open: never executed, or to be repeated."""
        return self._verdicts.get(point)

    def open(self, point: Point) -> bool:
        """Whether there is no trusted verdict yet."""
        return self._verdicts.get(point) is None

    def having(self, *verdicts: Verdict) -> list[Point]:
        """The points of these trusted verdicts, in the order in which they were first executed."""
        return [point for point, verdict in self._verdicts.items() if verdict in verdicts]

    def constructions(self, point: Point) -> int:
        """Engines that executing a point builds: 0, 1 or 2."""
        return sum(self._warm[role] != engine or point in self.runs for role, engine in self._engines(point))

    def free(self, point: Point) -> bool:
        """Whether both side runs are on disk and no repeat is called for."""
        return not self._engines(point)

    def products(self) -> Iterator[Point]:
        """The points that pairs of side runs on disk form and that have no outcome yet."""
        for rollout in sorted(self._disk[Role.ROLLOUT]):
            for training in sorted(self._disk[Role.TRAINING]):
                point = self._lattice.joined(rollout, training)
                if point is not None and point not in self.runs:
                    yield point

    def observed(self) -> tuple[Observed, ...]:
        """Everything known, as a later search takes it."""
        return tuple(
            Observed(aligned=self._lattice.decode(point), outcome=run)
            for point, runs in self.runs.items()
            for run in runs
        )

    def _engines(self, point: Point) -> list[tuple[Role, Point]]:
        """The sides that have to run, each with the engine-level part of its configuration."""
        sides = self._lattice.sides
        return [
            (role, point & sides[role] & self._lattice.engine)
            for role in Role
            if point in self.runs or point & sides[role] not in self._disk[role]
        ]
