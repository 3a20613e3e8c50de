"""A limit of the contract is written down once, in its data file."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "core/src/xcfg/builtin/data/tolerance-ws1.json"


def limits() -> set[float]:
    dlogp = json.loads(CONTRACT.read_text())["dlogp"]
    return set(dlogp["max_abs_dlogp"].values())


def numbers(text: str) -> set[float]:
    return {float(item) for item in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE]-?\d+)?(?![\w.])", text)}


def test_no_limit_stands_in_code() -> None:
    sources = [
        path
        for folder in ("core/src", "plugins", "kernels")
        for path in (ROOT / folder).rglob("*.py")
        if "tests" not in path.parts
    ]
    assert len(sources) > 50
    offenders = {str(path.relative_to(ROOT)): numbers(path.read_text()) & limits() for path in sources}
    assert not {path: found for path, found in offenders.items() if found}


def test_the_scan_would_see_a_limit() -> None:
    assert numbers("if value > 0.06: pass") & limits() == {0.06}
