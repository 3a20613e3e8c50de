"""Runs a plan of two side runs on one engine, of which the second never returns, as a coordinator of its own."""

import importlib.util
import sys
from pathlib import Path


def main() -> None:
    spec = importlib.util.spec_from_file_location("world", Path(__file__).parent.parent / "conftest.py")
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    world = conftest.World(Path(sys.argv[1]))
    sides = [world.side("rollout", "SlowSecond", batch__size=size) for size in (2, 4)]
    world.run(world.plan(*[(side, side) for side in sides]))


if __name__ == "__main__":
    main()
