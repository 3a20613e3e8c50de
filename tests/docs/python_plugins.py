"""The Python of pages on plugins, put together as the distribution that the page tells how to write, and loaded."""

from __future__ import annotations

import ast
import ctypes
import ctypes.util
import hashlib
import json
import sys
from pathlib import Path

from xcfg.model.kernel import BoundKernel
from xcfg.plugin.contribution import Contribution
from xcfg.plugin.executor import Executor
from xcfg.plugin.inventory import PluginState
from xcfg.plugin.loaded import loaded_file
from xcfg.plugin.protocols import Materializer
from xcfg.plugin.registry import load_registry
from xcfg.plugin.target import load_target
from xcfg.testing.distributions import write_distribution

from . import ckernel
from .bench import Bench
from .snippets import Snippet


def install(bench: Bench, name: str) -> Contribution:
    """Write the distribution on the page and load it: what it registers.

    Blocks with hooks make the plugin's module. A block that defines the class of a descriptor's target makes the module
    that the target names.
    """
    shown = bench.elsewhere()
    folder = bench.here / "site"
    plugin = "\n\n".join(block.text for block in shown if "@hookimpl" in block.text)
    write_distribution(folder, f"xcfg-{name}", plugin, entry=name)
    for module in [item for item in sys.modules if item.startswith(f"xcfg_{name}")]:
        del sys.modules[module]  # of another page
    bench.monkeypatch.syspath_prepend(folder)
    (loaded,) = (item for item in load_registry().loaded if item.info.name == name)
    assert loaded.info.state is PluginState.LOADED, loaded.info.error
    for key, descriptor in loaded.contribution.items():
        if target := getattr(descriptor, "target", ""):
            _module(folder, target, shown)
            made = load_target(target, f"xcfg-{name}")
            if key[0] == "materializer":
                assert isinstance(made(), Materializer)
            elif key[0] == "executor":
                assert isinstance(made({}), Executor) and made({}).slots()
    return loaded.contribution


def _module(folder: Path, target: str, shown: list[Snippet]) -> None:
    """The module of a target, from the block that defines the class of that name."""
    module, _, name = target.partition(":")
    (text,) = [block.text for block in shown if name in classes(block)]
    file = folder / f"{module.replace('.', '/')}.py"
    file.parent.mkdir(exist_ok=True)
    (file.parent / "__init__.py").touch()
    file.write_text(text)


def classes(block: Snippet) -> set[str]:
    """The names of classes that a block defines."""
    return {item.name for item in ast.parse(block.text).body if isinstance(item, ast.ClassDef)}


def write_a_plugin(bench: Bench) -> None:
    """It loads, its classes have the methods they need, and its profile selects in a real experiment."""
    assert len(dict(install(bench, "mine").items())) >= 2
    experiment = Path(__file__).parents[2] / "docs/examples/qwen3-tiny-tp2-fsdp.yaml"
    done = bench.xcfg("plan", experiment, "--profile", "mine-route", "--json")
    assert done.code == 0, done.out + done.err
    assert "xcfg-mine" in bench.xcfg("knobs", "show", "mine.block_size").out


def write_an_importer(bench: Bench) -> None:
    """It loads, claims its file alone, and the file compares: two tokens, the second 0.02 apart."""
    install(bench, "mine")
    row = {"uid": 7, "tokens": [5, 6], "sampler_logps": [-0.5, -1.0], "trainer_logps": [-0.5, -1.02]}
    Path("steps.jsonl").write_text(json.dumps(row) + "\n")
    done = bench.xcfg("compare", "steps.jsonl", "steps.jsonl", "--dtype", "bfloat16", "--json")
    assert done.code == 0, done.out + done.err
    assert abs(done.document["metrics"]["max_abs_dlogp"] - 0.02) < 1e-6
    assert (done.document["active_tokens"], done.document["worst"]["token"]) == (2, 6)


def build_time_kernels(bench: Bench) -> None:
    """The descriptor loads with its two builds; ``identify`` tells the file that a function is in."""
    ckernel.install(bench.here / "site")
    bench.monkeypatch.syspath_prepend(bench.here / "site")
    found = load_registry().backend("selected_logprob", "ckernel")
    assert [dict(build.knobs) for build in found.builds] == [{"kernel.fast_math": False}, {"kernel.fast_math": True}]
    bench.left.pop(0)
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    identify = bench.run(BoundKernel=BoundKernel)["identify"]
    bound = type("Bound", (), {"function": library.cos})
    digest = hashlib.sha256(loaded_file(library.cos).read_bytes()).hexdigest()
    assert identify(None, bound).build == digest
