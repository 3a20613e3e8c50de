"""The Python of pages on kernels, on real ranks: all of them in one launch, which is what importing torch costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .bench import Bench
from .snippets import ROOT

SCRIPT = Path(__file__).with_name("ranks.py")
TRANSFORMER_ENGINE = Path(sys.prefix) / "transformer-engine"
"""Where ``nox -s dev`` puts its Python files."""
TE_PAGE = "kernels/xcfg-te/README.md"
PAGES = (
    "docs/explanation/deterministic-logprob.md",
    "docs/explanation/grpo-loss.md",
    "kernels/xcfg-kernels/README.md",
    TE_PAGE,
)


def on_ranks(bench: Bench) -> None:
    """The page's blocks run in ``ranks.py``, which checks their numbers in float64."""
    page = str(bench.page.relative_to(ROOT))
    if page == TE_PAGE and not _transformer_engine():
        bench.elsewhere()
        pytest.skip(f"Transformer Engine is neither installed nor in {TRANSFORMER_ENGINE}")
    told = _launched()[page]
    assert not told, told
    assert bench.elsewhere()


def _transformer_engine() -> bool:
    return find_spec("transformer_engine") is not None or TRANSFORMER_ENGINE.is_dir()


@cache
def _launched() -> dict[str, str]:
    """What went wrong on each page."""
    pages = [page for page in PAGES if page != TE_PAGE or _transformer_engine()]
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(TRANSFORMER_ENGINE)]))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    with TemporaryDirectory() as folder:
        command = [sys.executable, str(SCRIPT), folder, *pages]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found
