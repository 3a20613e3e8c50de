from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
os.environ.setdefault("DS_ACCELERATOR", "cpu")  # as the plugin's environment does, before anything imports DeepSpeed
pytest.importorskip("deepspeed", reason="deepspeed is not installed")

from xcfg_torch.testing.tiny_model import make_tiny_qwen3, ragged_batch  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In float32, so that a cast of the weights to bfloat16 really rounds."""
    return make_tiny_qwen3(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def batch():
    return ragged_batch()
