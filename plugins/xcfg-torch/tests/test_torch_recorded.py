"""Files of torch.save as rows: tensors to numpy without a change of value, and nothing that runs code."""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from xcfg.errors import ArtifactError, Fault
from xcfg_torch.recorded import read_pt


def _saved(path: Path, value: object, **options: bool) -> Path:
    torch.save(value, path, **options)
    return path


def _fault(path: Path) -> Fault:
    with pytest.raises(ArtifactError) as raised:
        list(read_pt(path))
    (fault,) = raised.value.faults
    return fault


@pytest.mark.parametrize("zipped", [True, False])
def test_a_dict_is_one_row(tmp_path: Path, zipped: bool) -> None:
    stored = {
        "logprobs": torch.linspace(-20, 0, 257).to(torch.bfloat16).requires_grad_(),
        "ids": torch.tensor([[1, 2], [3, 4]], dtype=torch.int32),
        "half": torch.tensor([-0.1], dtype=torch.float16),
        "mask": torch.tensor([True, False]),
        "step": torch.tensor(7),
        "name": "run",
        "samples": [{"lp": torch.tensor([-1.5]), "n": 1}, {"lp": None, "n": 2}],
        "numbers": [1, 2.5, None],
        "by_step": {3: torch.ones(1)},
    }
    (row,) = read_pt(_saved(tmp_path / "r.pt", stored, _use_new_zipfile_serialization=zipped))
    assert row.place == "r.pt"
    assert row.fields["logprobs"].dtype == np.float32
    np.testing.assert_array_equal(row.fields["logprobs"], stored["logprobs"].float().detach().numpy())
    assert row.fields["ids"].dtype == np.int32
    assert row.fields["ids"].tolist() == [[1, 2], [3, 4]]
    assert row.fields["half"].dtype == np.float16
    assert row.fields["mask"].tolist() == [True, False]
    assert (row.fields["step"], row.fields["name"], row.fields["numbers"]) == (7, "run", [1, 2.5, None])
    first, second = row.fields["samples"]
    assert (first["lp"].tolist(), first["n"], second) == ([-1.5], 1, {"lp": None, "n": 2})
    assert row.fields["by_step"][3].tolist() == [1.0]


def test_bfloat16_keeps_its_value(tmp_path: Path) -> None:
    """-1.1 in bfloat16 is -1.1015625: 8 bits of significand, spacing 2**-7 in [1, 2)."""
    (row,) = read_pt(_saved(tmp_path / "r.pt", {"x": torch.tensor([-1.1], dtype=torch.bfloat16)}))
    assert row.fields["x"].tolist() == [-1.1015625]


def test_a_list_of_dicts_is_a_row_each(tmp_path: Path) -> None:
    rows = list(read_pt(_saved(tmp_path / "r.pt", [{"id": "a", "lp": torch.ones(2)}, {"id": "b"}])))
    assert [row.place for row in rows] == ["r.pt row 0", "r.pt row 1"]
    assert [row.fields["id"] for row in rows] == ["a", "b"]
    assert rows[0].fields["lp"].tolist() == [1.0, 1.0]


def test_what_needs_a_class_or_function_is_refused_and_never_called(tmp_path: Path) -> None:
    witness = tmp_path / "ran"

    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return open, (str(witness), "w")

    for name, value, needed in (
        ("harmful.pt", {"x": Harmful()}, "io.open"),
        ("namespace.pt", {"x": argparse.Namespace(a=1)}, "argparse.Namespace"),
        ("numpy.pt", {"x": np.ones(3)}, "numpy._core.multiarray._reconstruct"),
    ):
        fault = _fault(_saved(tmp_path / name, value))
        assert fault.where == name
        assert "refuses with weights_only" in fault.message
        assert needed in fault.message
        assert "torch.save a dict" in fault.hint
    assert not witness.exists()


def test_what_another_library_allows_in_this_process_is_refused_too(tmp_path: Path) -> None:
    path = _saved(tmp_path / "namespace.pt", {"x": argparse.Namespace(a=1)})
    with torch.serialization.safe_globals([argparse.Namespace]):
        assert torch.load(path, weights_only=True)["x"].a == 1
        assert "argparse.Namespace" in _fault(path).message
        assert argparse.Namespace in torch.serialization.get_safe_globals()


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_files_that_torch_did_not_write(tmp_path: Path) -> None:
    whole = _saved(tmp_path / "r.pt", {"x": torch.ones(3)}).read_bytes()
    for content in (whole[:-100], whole[:40], b"", b"hello world", b'{"a": 1}', pickle.dumps({"x": [1]})):
        path = tmp_path / "bad.pt"
        path.write_bytes(content)
        fault = _fault(path)
        assert fault.where == "bad.pt"
        assert "torch.save" in fault.message


@pytest.mark.parametrize(
    ("value", "where", "words"),
    [
        (torch.ones(3), "r.pt", "holds Tensor, not a dict or a list of dicts"),
        ({1: 2}, "r.pt", "has the key 1, not text"),
        ([{"a": 1}, 3], "r.pt row 1", "holds int, not a dict"),
        ({"x": {"y": torch.ones(2, 2).to_sparse()}}, "r.pt", "x.y is no plain tensor: can't convert Sparse layout"),
        ({"x": torch.ones(2, device="meta")}, "r.pt", "x is no plain tensor"),
    ],
)
def test_what_is_no_record_is_named(tmp_path: Path, value: object, where: str, words: str) -> None:
    fault = _fault(_saved(tmp_path / "r.pt", value))
    assert fault.where == where
    assert words in fault.message
