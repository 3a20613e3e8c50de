"""What ``doctor`` says is missing."""

from __future__ import annotations

import pytest

from xcfg.cli import wanting as module
from xcfg.cli.wanting import wanting

WHOLE = {"cuda_devices": 1, "cores": 8}


@pytest.fixture
def compiler(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/usr/bin/{name}")


def test_nothing_is_missing_where_everything_is_there(compiler, monkeypatch) -> None:
    monkeypatch.setattr(module, "installed_version", lambda name: "1.0")
    assert wanting(WHOLE) == []


def test_an_extra_is_named_with_its_pip_line(compiler, monkeypatch) -> None:
    monkeypatch.setattr(module, "installed_version", lambda name: None if name == "pyarrow" else "1.0")
    (found,) = wanting(WHOLE)
    assert (found["missing"], found["mend"]) == ("pyarrow", "pip install 'xcfg[parquet]'")
    assert "Parquet" in found["without"]


def test_machines_that_lack_something(monkeypatch) -> None:
    monkeypatch.setattr(module, "installed_version", lambda name: "1.0")
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = {item["missing"]: item for item in wanting({"cuda_devices": 0, "cores": 1})}
    assert set(found) == {"a C++ compiler", "a CUDA device", "a second core"}
    assert "training.compile" in found["a C++ compiler"]["without"]
    assert "nccl" in found["a CUDA device"]["without"]


def test_doctor_prints_them(xcfg, monkeypatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "a C++ compiler" in {item["missing"] for item in xcfg("doctor", "--json").document["wanting"]}
    assert "install g++ or clang" in xcfg("doctor").out
