"""DeepSpeed's own operator: compiled where it is wanted, past the guard of a build that was killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import xcfg_deepspeed.operator as operator
from xcfg.errors import EnvironmentFault

deepspeed_torch = pytest.importorskip("deepspeed.comm.torch")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(operator.EXTENSIONS, str(tmp_path))
    return tmp_path


def test_the_guard_of_a_killed_build_is_waited_for_by_nobody(root, monkeypatch) -> None:
    monkeypatch.setattr(deepspeed_torch, "build_shm_op", lambda: os.environ[operator.EXTENSIONS])
    folder = Path(operator.load_operator())
    assert folder.is_relative_to(root)
    guard = folder / "deepspeed_shm_comm" / "lock"
    guard.parent.mkdir(parents=True)
    guard.touch()
    assert operator.load_operator() == str(folder)
    assert not guard.exists()
    assert os.environ[operator.EXTENSIONS] == str(root)


def test_an_operator_that_does_not_compile_says_what_does_without(root, monkeypatch) -> None:
    def fail():
        raise RuntimeError("Error building extension")

    monkeypatch.setattr(deepspeed_torch, "build_shm_op", fail)
    with pytest.raises(EnvironmentFault, match=r"cannot be compiled: Error building(?s:.*)gloo sums without it"):
        operator.load_operator()
    assert os.environ[operator.EXTENSIONS] == str(root)


def test_an_operator_that_is_not_wanted_is_not_compiled(root) -> None:
    with operator.operator_hidden():
        assert deepspeed_torch.build_shm_op() is None
    assert list(root.iterdir()) == []


@pytest.mark.full  # a minute of C++
def test_it_compiles_past_such_a_guard(root, monkeypatch) -> None:
    monkeypatch.setattr(deepspeed_torch, "build_shm_op", lambda: os.environ[operator.EXTENSIONS])
    guard = Path(operator.load_operator()) / "deepspeed_shm_comm" / "lock"
    monkeypatch.undo()
    monkeypatch.setenv(operator.EXTENSIONS, str(root))
    guard.parent.mkdir(parents=True)
    guard.touch()
    assert operator.load_operator().vector_kernel_level() >= 0
    assert not guard.exists()
