"""The backend under the interpreter, and what it refuses where Transformer Engine or the interpreter is not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xcfg.model.capability import Unsupported
from xcfg.model.kernel import KernelRequest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")

from xcfg_te.backend import TransformerEngine

KIT = Path(__file__).with_name("te_kit.py")
PROBE = """
from xcfg.model.kernel import KernelRequest
from xcfg_te.backend import TransformerEngine
request = KernelRequest(operator="selected_logprob", device="cpu", dtype="float32", vocab_size=10)
print(TransformerEngine().probe(request).reason)
"""


def request(**changes) -> KernelRequest:
    known = {"operator": "selected_logprob", "device": "cpu", "dtype": "float32", "vocab_size": 500}
    return KernelRequest(**{**known, **changes})


def test_the_conformance_kit(interpreted) -> None:
    said = interpreted("-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", KIT)
    assert "31 passed" in said, said


def test_the_check_of_one_backend(interpreted) -> None:
    pytest.importorskip("xcfg_kernels")
    line = ("backends", "check", "te", "--rows", "4", "--vocab-size", "500", "--json")
    document = json.loads(interpreted("-m", "xcfg.cli", *line))
    assert (document["status"], set(document["kernels"]), document["refused"]) == ("pass", {"float32", "bfloat16"}, {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"operator": "grpo_loss"}, "te implements selected_logprob, not grpo_loss"),
        ({"options": {"block": 3}}, "te has no options, and 'block' is given"),
        ({"vocab_size": 0}, "a vocabulary of 0"),
        ({"device": "xpu"}, "te runs on cpu and cuda, not on xpu"),
        ({"dtype": "float16"}, "float32 and bfloat16, not float16"),
    ],
)
def test_requests_that_are_refused(changes, words) -> None:
    found = TransformerEngine().probe(request(**changes))
    assert isinstance(found, Unsupported) and words in found.reason
    with pytest.raises(ValueError, match=words.split("'")[0]), TransformerEngine().bind(request(**changes)):
        pass


def test_an_environment_without_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformer_engine", None)
    for device in ("cpu", "cuda"):
        found = TransformerEngine().probe(request(device=device))
        assert isinstance(found, Unsupported)
        assert "transformer_engine is not installed" in found.reason and "pip install" in found.reason


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("import os; del os.environ['TRITON_INTERPRET']", "set torch.device: cpu in the experiment"),
        (
            "import os; del os.environ['TRITON_INTERPRET']; import triton; os.environ['TRITON_INTERPRET'] = '1'",
            "triton was imported before TRITON_INTERPRET=1 was set",
        ),
    ],
)
def test_a_process_without_the_interpreter(before, words, interpreted) -> None:
    assert words in interpreted("-c", f"{before}\n{PROBE}")


def test_a_machine_without_cuda(interpreted) -> None:
    assert "torch sees no CUDA device" in interpreted("-c", PROBE.replace("cpu", "cuda"), CUDA_VISIBLE_DEVICES="")


KERNELS, LAUNCHER = "common/triton/cross_entropy.py", "pytorch/triton/cross_entropy.py"
OLD = "def cross_entropy_forward(_input, target, label_smoothing, reduce_loss, dist_process_group, ignore_idx): ..."
VERSION = "Metadata-Version: 2.1\nName: transformer_engine\nVersion: 2.10.0\n"


@pytest.mark.parametrize(
    ("files", "metadata", "words"),
    [
        (
            {KERNELS: "", LAUNCHER: OLD},
            VERSION,
            "transformer_engine 2.10.0 takes other arguments in cross_entr",
        ),
        ({KERNELS: ""}, VERSION, "transformer_engine 2.10.0 has no pytorch/triton/cross_entropy.py"),
        (
            {KERNELS: "raise OSError('no driver')", LAUNCHER: OLD},
            VERSION,
            "imported here: OSError: no driver",
        ),
        ({KERNELS: "", LAUNCHER: OLD}, "", "belongs to no installed distribution"),
    ],
    ids=["another version", "no launcher", "no import", "no version"],
)
def test_another_transformer_engine(files, metadata, words, tmp_path) -> None:
    for package in ("", "common", "common/triton", "pytorch", "pytorch/triton"):
        (tmp_path / "transformer_engine" / package).mkdir()
        (tmp_path / "transformer_engine" / package / "__init__.py").touch()
    for name, text in files.items():
        (tmp_path / "transformer_engine" / name).write_text(text)
    if metadata:
        (tmp_path / "transformer_engine-2.10.0.dist-info").mkdir()
        (tmp_path / "transformer_engine-2.10.0.dist-info/METADATA").write_text(metadata)
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": paths, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, timeout=120)
    assert words in done.stdout, done.stdout + done.stderr


def test_padding_of_a_sharded_head_is_refused() -> None:
    bounds = {
        "bounds": [[0, 256], [256, 512]],
        "vocab_size": 500,
        "padded_vocab_size": 512,
        "tp_rank": 0,
        "tp_world": 2,
    }
    found = TransformerEngine().probe(request(vocab_size=500, sharding=bounds))
    assert isinstance(found, Unsupported) and "12 columns of padding" in found.reason
