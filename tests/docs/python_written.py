"""The Python of pages on writing a distribution: put into the scaffold, which is installed and held against the kit."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from xcfg.errors import InvalidInput
from xcfg.plugin.executor import Executor
from xcfg.plugin.target import load_target

from .bench import Bench
from .followed import Followed, named_file
from .snippets import ROOT

EXAMPLE = ROOT / "docs/examples/qwen3-tiny-tp2-fsdp.yaml"
ROWS = [
    {"prompt": [7], "response": [5, 6, 9], "counts": [1, 1, 0], "gen_logprobs": [-0.5, -1.0, -3.0]},
    {"prompt": [8], "response": [4], "counts": [1], "gen_logprobs": [-0.25]},
]
TRAINED = [[-0.5, -1.02, -9.0], [-0.25]]
"""The second token is 0.02 apart; the third does not count."""


def follow(bench: Bench, taken: Callable[[list[str]], bool] = lambda words: True) -> Followed:
    """The page followed; every block of Python was put into a file."""
    nowhere = [block.place for block in bench.elsewhere() if not named_file(block)]
    assert not nowhere, f"{nowhere}: the paragraph before names no file"
    page = Followed(bench.page, bench.here)
    page.follow(taken)
    return page


def write_a_plugin(bench: Bench) -> None:
    """It passes the kit, and its profile selects in a real experiment."""
    page = follow(bench)
    assert " passed" in page.done["pytest xcfg-my-engine"]
    for line in ("xcfg knobs show my_engine.block_size", f"xcfg plan {EXAMPLE} --profile my-route"):
        page.run(line, line.split())
    assert "xcfg-my-engine" in page.done["xcfg knobs show my_engine.block_size"]


def write_an_importer(bench: Bench) -> None:
    """It passes the kit, claims its file alone, and the file compares."""
    lines = [json.dumps({**row, "train_logprobs": trained}) for row, trained in zip(ROWS, TRAINED, strict=True)]
    (bench.here / "steps.jsonl").write_text("\n".join(lines) + "\n")
    page = follow(bench)
    (shown,) = [line for line in page.done if line.startswith("xcfg compare")]
    page.run(f"{shown} --json", [*shown.split(), "--json"])
    document = json.loads(page.done[f"{shown} --json"])
    assert (document["active_tokens"], document["worst"]["token"]) == (3, 6)
    assert abs(document["metrics"]["max_abs_dlogp"] - 0.02) < 1e-6


def write_a_kernel(bench: Bench) -> None:
    """Both kernels pass the kit. What it says of experiments is run with the long tests."""
    pytest.importorskip("torch")
    page = follow(bench, lambda words: words[0] in ("pip", "pytest") or words[1] == "init")
    assert "TRITON_INTERPRET=1 pytest xcfg-my-kernel" in page.done


def write_an_executor(bench: Bench) -> None:
    """It registers and is an executor. The kit launches processes, with the long tests."""
    page = follow(bench, lambda words: words[0] != "pytest")
    bench.monkeypatch.syspath_prepend(page.site)
    made = load_target("xcfg_my_cluster.executor:MyClusterExecutor", "xcfg-my-cluster")
    assert isinstance(made({}), Executor) and made({}).slots() == 4
    with pytest.raises(InvalidInput, match="no_such"):
        made({"no_such": "1"})
