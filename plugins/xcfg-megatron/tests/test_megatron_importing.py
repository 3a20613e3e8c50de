"""Megatron-Core beside Python files of Transformer Engine that have no libraries, and where it is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xcfg.errors import EnvironmentFault
from xcfg.model.capability import Unsupported
from xcfg.model.kernel import KernelRequest
from xcfg_megatron import importing
from xcfg_megatron.cross_entropy import CrossEntropy
from xcfg_megatron.layers import chosen_spec, layer_spec_fault

META = "raise RuntimeError('Found empty `transformer-engine` meta package installed.')\n"
BESIDE = """
import sys
from xcfg_megatron.importing import megatron, transformer_engine_fault
print(transformer_engine_fault())
print(megatron("tensor_parallel.cross_entropy").__name__)
print("transformer_engine" in sys.modules)
"""
SITE = Path(sys.prefix) / "transformer-engine"
"""Where the development environment keeps the Python files of Transformer Engine."""


@pytest.mark.full
def test_a_meta_package_is_no_obstacle(tmp_path) -> None:
    (tmp_path / "transformer_engine").mkdir()
    (tmp_path / "transformer_engine" / "__init__.py").write_text(META)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", BESIDE], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    fault, module, left = done.stdout.splitlines()[-3:]
    assert "transformer_engine.pytorch cannot be imported: RuntimeError: Found empty" in fault
    assert (module, left) == ("megatron.core.tensor_parallel.cross_entropy", "False")


@pytest.mark.full
def test_the_kernel_of_transformer_engine_beside_megatrons_layers(checkpoint, tmp_path) -> None:
    pytest.importorskip("xcfg_te")
    if not SITE.is_dir():
        pytest.skip(f"Transformer Engine is not in {SITE}")
    program = f"""
import numpy as np
from attrs import evolve
from pathlib import Path
from xcfg_megatron.testing.cases import megatron_play
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import play
from xcfg_torch.testing.tiny_model import ragged_batch
folder, batch = Path({str(checkpoint)!r}), ragged_batch()
what = evolve(megatron_play(folder, {{"logp.backend": "te"}}), backend="xcfg_te.backend:TransformerEngine")
found = play(what, batch)
assert found.bound.backend == "te", found.bound
gap = np.abs(found.scored[0].samples.logprobs - np.concatenate(oracle_logprobs(folder, batch))).max()
assert gap < 2e-5, gap
"""
    environment = {**os.environ, "PYTHONPATH": str(SITE), "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_an_environment_without_megatron(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "megatron", None)
    monkeypatch.setattr(importing, "find_spec", lambda name: None)
    for name in [name for name in sys.modules if name.startswith("megatron.core.tensor_parallel")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EnvironmentFault, match=r"megatron-core is not installed .*xcfg-megatron\[engine\]"):
        importing.megatron("tensor_parallel.cross_entropy")
    found = CrossEntropy().probe(
        KernelRequest(operator="selected_logprob", device="cpu", dtype="float32", vocab_size=10)
    )
    assert isinstance(found, Unsupported) and "megatron-core is not installed" in found.reason


def test_transformer_engines_layers_are_refused_where_it_is_not(monkeypatch) -> None:
    assert "CUDA devices only" in layer_spec_fault("transformer_engine", "cpu")
    monkeypatch.setattr("xcfg_megatron.layers.transformer_engine_fault", lambda: "it is not installed")
    assert layer_spec_fault("transformer_engine", "cuda") == "it is not installed"
    assert chosen_spec(None, "cuda") == chosen_spec(None, "cpu") == "local"
    monkeypatch.setattr("xcfg_megatron.layers.transformer_engine_fault", lambda: "")
    assert chosen_spec(None, "cuda") == chosen_spec("transformer_engine", "cuda") == "transformer_engine"
    assert chosen_spec("local", "cuda") == "local"
