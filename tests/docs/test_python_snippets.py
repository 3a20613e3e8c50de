"""The Python of every page runs; a page with Python that nothing here runs is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from .bench import Bench
from .python_frameworks import frameworks
from .python_loop import training_loop
from .python_plugins import build_time_kernels
from .python_ranks import PAGES, on_ranks
from .python_results import keep_and_share, read_the_cube
from .python_written import write_a_kernel, write_a_plugin, write_an_executor, write_an_importer
from .snippets import ROOT, blocks, everywhere, pages

TABLE = {
    **dict.fromkeys(PAGES, on_ranks),
    "docs/how-to/build-time-kernels.md": build_time_kernels,
    "docs/how-to/write-a-plugin.md": write_a_plugin,
    "docs/how-to/write-a-kernel.md": write_a_kernel,
    "docs/how-to/write-an-importer.md": write_an_importer,
    "docs/how-to/write-an-executor.md": write_an_executor,
    "docs/how-to/read-the-cube.md": read_the_cube,
    "docs/how-to/keep-and-share-results.md": keep_and_share,
    "docs/how-to/frameworks.md": frameworks,
    "docs/how-to/compare-in-a-training-loop.md": training_loop,
}
WITH_PYTHON = sorted({str(block.page.relative_to(ROOT)) for block in everywhere("python")})


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_its_python_runs(page: str, xcfg, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page in TABLE, f"{page} has Python that no test runs: add it to the table"
    bench = Bench(ROOT / page, here, xcfg, monkeypatch)
    TABLE[page](bench)
    assert not bench.left, f"{bench.left[0].place} was not run"


def test_nothing_in_the_table_is_gone() -> None:
    assert set(TABLE) == set(WITH_PYTHON)


def test_no_block_of_python_goes_by_another_name() -> None:
    languages = {block.language for page in pages() for block in blocks(page) if not block.language.startswith("{")}
    assert languages <= {"python", "sh", "yaml", "toml", "json", "text", ""}
