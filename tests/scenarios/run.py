"""How well the diagnosis names faults: fresh instances of every scenario, what was named, and the rates.

The scenarios of ``xcfg.testing.scenarios`` are drawn again and again with seeds that nobody has seen, and each instance
is shown to ``xcfg.diagnosis.diagnose.diagnose``::

    python tests/scenarios/run.py                                  # 10 seeds a scenario, of mixed sizes and dtypes
    python tests/scenarios/run.py --seeds 50 --scenario 'temperature-*' --dtype bfloat16
    python tests/scenarios/run.py --seed 7 --rows 24 --tokens 2000 --json rates.json

It prints the confusion matrix by kind and by scenario, the rate of right first answers, the rate of clean controls
that were given a fault, with the Wilson interval of each, and the rates of two faults at once. Exit status 1 where
fewer than 95% of single faults, or of two at once, are named right first, or 1% or more of the clean controls are
given a fault. ``--seed`` repeats a run; it is printed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import secrets
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from tally import Answer, Tally

from xcfg.testing.scenarios import SCENARIOS, Scenario, Shape

SIZES = {"rows": (12, 24, 48), "tokens": (1000, 2000, 4000), "dtype": ("float32", "float16", "bfloat16")}
VOCABULARY = (120, 200, 256, 500)
CLEAN_SHARE = 10
"""Clean controls are drawn this many times as often: a rate below 1% needs hundreds of them."""


def shape_of(generator: np.random.Generator, arguments: argparse.Namespace) -> Shape:
    """The size asked for; what was not asked for is drawn."""
    sizes = {name: getattr(arguments, name) or generator.choice(known).item() for name, known in SIZES.items()}
    return Shape(vocabulary=int(generator.choice(VOCABULARY)), **sizes)


def answers(chosen: list[Scenario], arguments: argparse.Namespace) -> list[Answer]:
    """What the diagnosis says of every instance."""
    diagnose = importlib.import_module("xcfg.diagnosis.diagnose").diagnose
    found = []
    for scenario in chosen:
        for number in range(arguments.seeds * (CLEAN_SHARE if scenario.kind == "floor" else 1)):
            key = [arguments.seed, zlib.crc32(scenario.id.encode()), number]
            generator = np.random.default_rng(key)
            shape = shape_of(generator, arguments)
            observed = scenario.draw(generator, shape)
            start = time.perf_counter()
            diagnosis = diagnose(observed)
            seconds = time.perf_counter() - start
            named = tuple(signature.kind for signature in diagnosis.signatures)
            few = bool(diagnosis.too_few)
            found.append(Answer(scenario, shape, number, named or ("none",), few, seconds))
    return found


def main(argv: list[str] | None = None) -> int:
    """Draw, diagnose, print; 0 where every rate is as good as stated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="instances of each scenario (clean controls: 10 times)")
    parser.add_argument("--seed", type=int, help="where all seeds come from; fresh unless given")
    parser.add_argument("--rows", type=int, help="sequences of an instance")
    parser.add_argument("--tokens", type=int, help="judged tokens of an instance")
    parser.add_argument("--dtype", choices=SIZES["dtype"])
    parser.add_argument("--scenario", action="append", default=[], help="an id or a pattern such as 'block-*'")
    parser.add_argument("--json", type=Path, help="write the figures and every wrong answer here")
    arguments = parser.parse_args(argv)
    arguments.seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    patterns = arguments.scenario or ["*"]
    chosen = [one for one in SCENARIOS.values() if any(Path(one.id).match(pattern) for pattern in patterns)]
    if not chosen:
        parser.error(f"no scenario is called {' or '.join(patterns)}; there are: {', '.join(SCENARIOS)}")
    tally = Tally(answers(chosen, arguments))
    print(f"seed {arguments.seed}, {len(tally.answers)} instances of {len(chosen)} scenarios")
    print(tally.matrix())
    print(tally.scenarios())
    print(tally.summary())
    if arguments.json:
        arguments.json.write_text(json.dumps({"seed": arguments.seed, **tally.figures()}, indent=1), encoding="utf-8")
    for fault in tally.faults():
        print(f"below the stated rate: {fault}")
    return 1 if tally.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
