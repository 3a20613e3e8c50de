"""Executions of the search beside ddmin, linear elimination and prefix bisection on synthetic lattices.

Prints medians over seeded instances; `python tests/bench/search.py [INSTANCES]`. The last column holds the search's
executions and engine constructions against the least of the others that are always right. Every algorithm starts from
a failing production point that costs nothing, executes everything aligned, and ends with the runs that prove its
answer. Two proofs are compared: leaving out each knob in turn (the search states the assumption of monotonicity, which
makes that enough), and executing every proper part of the answer (the search's default, which assumes nothing).
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from math import comb, log2

from xcfg.analyzer.search.outcome import Observed, Outcome
from xcfg.analyzer.search.problem import AlignableKnob, Options, Problem
from xcfg.analyzer.search.session import Trial, search
from xcfg.model.scorer import Role
from xcfg.model.status import Status

SIZES = (10, 20, 40)
CAUSES = (1, 2, 3)
INSTANCES = 200

Passes = Callable[[frozenset[int]], bool]
Algorithm = Callable[["Bench", int], frozenset[int]]


class Bench:
    """Executes each set of aligned knobs once and counts what that takes.

    Knobs are engine-level, all on one side or on both in turn. A case whose two side runs exist takes no execution,
    whoever asks for it; one whose side runs do not takes as many engine constructions as there are new ones.
    """

    def __init__(self, passes: Passes, *, sides: int) -> None:
        """Production (nothing aligned) is known to fail."""
        self._passes = passes
        self._sides = sides
        self._known: dict[frozenset[int], bool] = {frozenset(): passes(frozenset())}
        self._built = {(side, frozenset[int]()) for side in range(sides)}
        self.executions = self.constructions = 0

    def __call__(self, aligned: frozenset[int]) -> bool:
        """Whether this set of aligned knobs passes."""
        if aligned not in self._known:
            runs = {
                (side, frozenset(knob for knob in aligned if knob % self._sides == side)) for side in range(self._sides)
            }
            self.executions += bool(runs - self._built)
            self.constructions += len(runs - self._built)
            self._built |= runs
            self._known[aligned] = self._passes(aligned)
        return self._known[aligned]


def linear(passes: Bench, knobs: int) -> frozenset[int]:
    """Linear elimination: put one knob after another back to production, keep it there where the rest passes."""
    kept = frozenset(range(knobs))
    passes(kept)
    for knob in range(knobs):
        if kept - {knob} and passes(kept - {knob}):
            kept -= {knob}
    return kept


def prefix(passes: Bench, knobs: int) -> frozenset[int]:
    """Prefix bisection: the shortest passing prefix ends with a cause; then again with the causes always aligned."""
    passes(frozenset(range(knobs)))
    found: frozenset[int] = frozenset()
    end = knobs
    while not found or not passes(found):
        failing, passing = 0, end
        while passing - failing > 1:
            middle = (failing + passing) // 2
            if passes(found | frozenset(range(middle))):
                passing = middle
            else:
                failing = middle
        end = passing - 1
        found |= {end}
    return found


def ddmin(passes: Bench, knobs: int) -> frozenset[int]:
    """Delta debugging (A. Zeller, R. Hildebrandt, 2002, https://doi.org/10.1109/32.988498) for a passing set."""
    kept = list(range(knobs))
    passes(frozenset(kept))
    chunks = 2
    while len(kept) > 1:
        bounds = [at * len(kept) // chunks for at in range(chunks + 1)]
        subsets = [kept[low:high] for low, high in pairwise(bounds)]
        complements = [[knob for knob in kept if knob not in subset] for subset in subsets] if chunks > 2 else []
        smaller = next((chosen for chosen in (*subsets, *complements) if passes(frozenset(chosen))), None)
        if smaller is not None:
            chunks = 2 if smaller in subsets else max(chunks - 1, 2)
            kept = smaller
        elif chunks < len(kept):
            chunks = min(2 * chunks, len(kept))
        else:
            break
    return frozenset(kept)


def proven(algorithm: Algorithm, *, all_parts: bool) -> Algorithm:
    """The algorithm, then the executions that prove its answer."""

    def run(passes: Bench, knobs: int) -> frozenset[int]:
        answer = algorithm(passes, knobs)
        for size in range(1 if all_parts else max(len(answer) - 1, 1), len(answer)):
            for part in combinations(sorted(answer), size):
                passes(frozenset(part))
        return answer

    return run


def searched(*, sides: int, monotone: bool) -> Algorithm:
    """The search; what it fills in is asked of the bench too."""

    def run(passes: Bench, knobs: int) -> frozenset[int]:
        def execute(trial: Trial) -> Outcome:
            aligned = frozenset(int(name) for name in trial.aligned)
            return Outcome(status=Status.PASS if passes(aligned) else Status.FAIL)

        roles = tuple(Role)
        problem = Problem(
            knobs=[
                AlignableKnob(name=str(knob), candidates=(True,), sides={roles[knob % sides]}) for knob in range(knobs)
            ]
        )
        production = Observed(aligned={}, outcome=Outcome(status=Status.FAIL))
        claim = search(problem, execute, Options(monotone=monotone), outcomes=[production])
        assert claim.verified and claim.aligned is not None
        assert claim.executions.run == passes.executions
        assert claim.executions.constructions == passes.constructions
        return frozenset(int(name) for name in claim.aligned)

    return run


def conjunctive(random: random.Random, knobs: int, causes: int) -> Passes:
    """Every cause has to be aligned."""
    needed = frozenset(random.sample(range(knobs), causes))
    return lambda aligned: needed <= aligned


def redundant(random: random.Random, knobs: int, causes: int) -> Passes:
    """Each cause takes two mismatches at once: aligning either is enough."""
    drawn = random.sample(range(knobs), 2 * causes)
    pairs = [frozenset(drawn[at : at + 2]) for at in range(0, 2 * causes, 2)]
    return lambda aligned: all(pair & aligned for pair in pairs)


def cancelling(random: random.Random, knobs: int, causes: int) -> Passes:
    """Every cause has to be aligned; and two further mismatches cancel, so that aligning just one of them fails."""
    drawn = random.sample(range(knobs), causes + 2)
    needed, pair = frozenset(drawn[2:]), frozenset(drawn[:2])
    return lambda aligned: needed <= aligned and len(pair & aligned) != 1


FAMILIES = {"conjunctive": conjunctive, "redundant": redundant, "cancelling": cancelling}


def irreducible(passes: Passes, answer: frozenset[int]) -> bool:
    """Whether the answer passes and no proper part does, by brute force."""
    parts = (part for size in range(len(answer)) for part in combinations(sorted(answer), size))
    return passes(answer) and not any(passes(frozenset(part)) for part in parts)


def measure(
    family: str, knobs: int, causes: int, algorithm: Algorithm, sides: int, instances: int
) -> tuple[float, ...]:
    """Median executions, median constructions, and the fraction of answers that are irreducible."""
    executions, constructions, right = [], [], 0
    for seed in range(instances):
        passes = FAMILIES[family](random.Random(f"{family} {knobs} {causes} {seed}"), knobs, causes)
        bench = Bench(passes, sides=sides)
        right += irreducible(passes, algorithm(bench, knobs))
        executions.append(bench.executions)
        constructions.append(bench.constructions)
    return statistics.median(executions), statistics.median(constructions), right / instances


def rows(families: tuple[str, ...], *, sides: int, all_parts: bool, instances: int) -> Iterator[str]:
    """One line a lattice: executions/constructions of each algorithm, the bound, and a word on who is best."""
    textbook = {"linear": linear, "ddmin": ddmin, "prefix": prefix}
    algorithms = {name: proven(algorithm, all_parts=all_parts) for name, algorithm in textbook.items()}
    algorithms = {"search": searched(sides=sides, monotone=not all_parts), **algorithms}
    yield f"{'lattice':12} knobs causes " + "".join(f"{name:>17}" for name in algorithms) + "   bound  search is"
    for family in families:
        for knobs in SIZES:
            for causes in CAUSES:
                if family == "redundant" and 2 * causes > knobs:
                    continue
                found = {
                    name: measure(family, knobs, causes, algorithm, sides, instances)
                    for name, algorithm in algorithms.items()
                }
                cells = "".join(
                    f"{f'{runs:g}/{engines:g} {share:4.0%}':>17}" for runs, engines, share in found.values()
                )
                bound = 1.5 * log2(comb(knobs, causes)) + causes + 1
                right = [found[name] for name in textbook if found[name][2] == 1.0]
                verdict = [
                    "alone"
                    if not right
                    else "least"
                    if found["search"][at] <= min(row[at] for row in right)
                    else "MORE"
                    for at in (0, 1)
                ]
                yield f"{family:12} {knobs:5} {causes:6} {cells}  {bound:6.1f}  {'/'.join(verdict)}"


def main(instances: int = INSTANCES) -> None:
    """Print every table."""
    print(f"median executions/engine constructions and share of irreducible answers, {instances} instances a row")
    print("bound: 1.5 log2 C(knobs, causes) + causes + 1 executions")
    monotone = ("conjunctive", "redundant")
    tables = (
        ("one side, proof by leaving each knob out (monotonicity stated)", monotone, 1, False),
        ("one side, proof by every part (nothing assumed)", tuple(FAMILIES), 1, True),
        ("two sides, proof by leaving each knob out (monotonicity stated)", monotone, 2, False),
        ("two sides, proof by every part (nothing assumed)", tuple(FAMILIES), 2, True),
    )
    for title, families, sides, all_parts in tables:
        began = time.perf_counter()
        print(f"\n{title}")
        for line in rows(families, sides=sides, all_parts=all_parts, instances=instances):
            print(line, flush=True)
        print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
