"""npz and safetensors: arrays as numpy, safetensors and torch wrote them, and what is refused."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from xcfg.importers.formats import npz, safetensors_file

ARRAYS = {
    "id": np.array(["a", "ä"]),
    "response_ids": np.array([[1, 2], [3, 4]], np.int32),
    "logprobs": np.array([[-0.1, np.nan], [-np.inf, 0.0]], np.float16),
    "mask": np.array([[True, False], [True, True]]),
    "temperature": np.array(0.7),
}


def _npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def test_npz_is_one_row_of_the_arrays(write) -> None:
    (found,) = npz.read(write("r.npz", _npz(**ARRAYS)))
    assert found.place == "r.npz"
    assert list(found.fields) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found.fields[name], array)
        assert found.fields[name].dtype == array.dtype
    assert found.fields.get("absent") is None


def test_an_array_of_objects_is_refused_where_it_is_asked_for(write, refused) -> None:
    ragged = np.array([np.ones(1), np.ones(2)], dtype=object)
    (found,) = npz.read(write("r.npz", _npz(logprobs=ragged, id=np.array(["a"]))))
    assert found.fields["id"].tolist() == ["a"]
    fault = refused(lambda: found.fields["logprobs"])
    assert "'logprobs'" in fault.message
    assert "response_length" in fault.hint


def test_broken_npz_is_named(write, refused, tmp_path: Path) -> None:
    whole = _npz(**ARRAYS)
    assert refused(lambda: npz.read(write("cut.npz", whole[:-30]))).where == "cut.npz"
    assert "not an npz archive" in refused(lambda: npz.read(write("text.npz", "hello"))).message
    bare = io.BytesIO()
    np.save(bare, np.ones(3))
    assert "np.savez" in refused(lambda: npz.read(write("bare.npz", bare.getvalue()))).hint
    bad = bytearray(_npz(logprobs=np.random.default_rng(0).random(1000)))
    bad[200:260] = bytes(60)
    (found,) = npz.read(write("bad.npz", bytes(bad)))
    assert refused(lambda: found.fields["logprobs"]).where == "bad.npz"


def test_an_array_twice_is_refused(tmp_path: Path, refused) -> None:
    path = tmp_path / "r.npz"
    member = io.BytesIO()
    np.save(member, np.ones(1))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", member.getvalue())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", member.getvalue())
    assert refused(lambda: npz.read(path)).message == "array 'x' appears twice"


@pytest.mark.parametrize("read", [npz.read, safetensors_file.read])
def test_pickles_are_refused_by_name(write, refused, tmp_path: Path, read) -> None:
    assert "a pickle" in refused(lambda: read(write("p.npz", pickle.dumps({"a": 1})))).message
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
    fault = refused(lambda: read(tmp_path / "t.npz"))
    assert fault.message == "an archive of torch.save, which holds a pickle"
    assert ".pt" in fault.hint


def test_safetensors_is_one_row_of_tensors_and_metadata(tmp_path: Path) -> None:
    arrays = {name: array for name, array in ARRAYS.items() if name != "id"}
    metadata = {"id": json.dumps(["a", "ä"]), "dtype": "bfloat16", "top_p": "0.9", "rank": "3", "top_k": "null"}
    names = {"version": "1e5", "build": "007", "quoted": '"x"'}
    save_file(arrays, tmp_path / "r.safetensors", metadata | names)
    (found,) = safetensors_file.read(tmp_path / "r.safetensors")
    assert found.place == "r.safetensors"
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.fields[name], array)
        assert found.fields[name].dtype == array.dtype
    expected = {"id": ["a", "ä"], "dtype": "bfloat16", "top_p": 0.9, "rank": 3, "top_k": None}
    assert {name: found.fields[name] for name in metadata} == expected
    assert {name: found.fields[name] for name in names} == {"version": "1e5", "build": "007", "quoted": "x"}


def test_bfloat16_is_widened_by_its_bits(tmp_path: Path) -> None:
    """Bits of -1.1015625 (0xBF8D), 1 (0x3F80), infinity (0x7F80) and a NaN (0x7FC0), after another tensor."""
    header = {
        "other": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
        "logprobs": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [2, 10]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = bytes([7, 8]) + struct.pack("<4H", 0xBF8D, 0x3F80, 0x7F80, 0x7FC0)
    (tmp_path / "r.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    (found,) = safetensors_file.read(tmp_path / "r.safetensors")
    assert found.fields["logprobs"].dtype == np.float32
    np.testing.assert_array_equal(found.fields["logprobs"], [[-1.1015625, 1.0], [np.inf, np.nan]])
    assert found.fields["other"].tolist() == [7, 8]


def test_bfloat16_that_torch_wrote(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file as save_torch

    stored = torch.linspace(-20, 0, 257).to(torch.bfloat16)
    save_torch({"logprobs": stored, "ids": torch.arange(3)}, tmp_path / "r.safetensors")
    (found,) = safetensors_file.read(tmp_path / "r.safetensors")
    np.testing.assert_array_equal(found.fields["logprobs"], stored.float().numpy())
    assert found.fields["ids"].tolist() == [0, 1, 2]


def test_a_header_whose_length_reads_like_a_pickle_is_none(write) -> None:
    """640 bytes of header: the file opens with 0x80 0x02, as a pickle of protocol 2 does, and ends in its full stop."""
    text = json.dumps({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode().ljust(640)
    content = struct.pack("<Q", 640) + text + b"."
    assert content[:2] == b"\x80\x02"
    (found,) = safetensors_file.read(write("r.safetensors", content))
    assert found.fields["x"].tolist() == [ord(".")]


def test_broken_safetensors_is_named(write, refused) -> None:
    whole = save({"logprobs": np.ones(8, np.float32)})
    for content in (whole[:-3], whole[:5], b"hello", b"\xff" * 64):
        fault = refused(lambda content=content: safetensors_file.read(write("r.safetensors", content)))
        assert fault.where == "r.safetensors"
        assert fault.message.startswith("not a safetensors file: ")


def test_a_name_twice_is_refused(write, refused) -> None:
    both = save({"id": np.ones(1)}, metadata={"id": "a"})
    fault = refused(lambda: safetensors_file.read(write("r.safetensors", both)))
    assert fault.message == "'id' is both a tensor and metadata"
    (found,) = safetensors_file.read(
        write("m.safetensors", save({"x": np.ones(1)}, metadata={"t": '[{"1": 2, "1": 3}]'}))
    )
    assert "key '1' appears twice" in refused(lambda: found.fields["t"]).message
