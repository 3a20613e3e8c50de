"""Files of every container: whole ones are compared, truncated ones and pickles are refused by name."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from .recorded_files import compared, record, write

ROWS = [record(f"s{at}", logprobs=[-1.0 - at, -2.0, -3.0]) for at in range(4)]


def jsonl(path: Path, rows):
    return write(path.with_suffix(".jsonl"), rows)


def gz(path: Path, rows):
    path = path.with_suffix(".jsonl.gz")
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def array(path: Path, rows):
    return write(path.with_suffix(".json"), json.dumps(rows))


def parquet(path: Path, rows):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    path = path.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def columns(rows):
    made = {name: np.array([row[name] for row in rows]) for name in ("response_ids", "logprobs")}
    return {**made, "logprobs": made["logprobs"].astype(np.float32)}


def npz(path: Path, rows):
    path = path.with_suffix(".npz")
    np.savez(path, id=np.array([row["id"] for row in rows]), dtype=np.array("bfloat16"), **columns(rows))
    return path


def safetensors(path: Path, rows):
    from safetensors.numpy import save_file

    path = path.with_suffix(".safetensors")
    save_file(columns(rows), path, {"id": json.dumps([row["id"] for row in rows]), "dtype": "bfloat16"})
    return path


def torch_file(path: Path, rows):
    torch = pytest.importorskip("torch")
    pytest.importorskip("xcfg_torch")
    path = path.with_suffix(".pt")
    tensors = {name: torch.from_numpy(value) for name, value in columns(rows).items()}
    torch.save({"id": [row["id"] for row in rows], "dtype": "bfloat16", **tensors}, path)
    return path


CONTAINERS = {
    ".jsonl": jsonl,
    ".jsonl.gz": gz,
    ".json": array,
    ".parquet": parquet,
    ".npz": npz,
    ".safetensors": safetensors,
    ".pt": torch_file,
}


@pytest.mark.parametrize("suffix", CONTAINERS)
def test_every_container_holds_the_same_records(xcfg, tmp_path: Path, suffix: str) -> None:
    training = [*ROWS[:2], record("s2", logprobs=[-3.0, -2.5, -3.0]), ROWS[3]]
    paths = jsonl(tmp_path / "rollout", ROWS), CONTAINERS[suffix](tmp_path / "training", training)
    done = xcfg("compare", *paths, "--json")
    assert (done.document["status"], done.document["active_tokens"]) == ("fail", 12), done
    worst = done.document["worst"]
    assert (worst["sequence"], worst["position"], worst["token"]) == ("s2", 1, 6)
    assert (worst["rollout_logp"], worst["train_logp"]) == (-2.0, -2.5)


@pytest.mark.parametrize("suffix", CONTAINERS)
def test_a_truncated_file_is_refused_wherever_it_ends(xcfg, tmp_path: Path, suffix: str) -> None:
    rollout = jsonl(tmp_path / "rollout", ROWS)
    whole = CONTAINERS[suffix](tmp_path / "training", ROWS)
    content = whole.read_bytes()
    for kept in (1, 9, len(content) // 2 + 3, len(content) - 5):
        whole.write_bytes(content[:kept])
        done = xcfg("compare", rollout, whole, "--json")
        assert (done.document["status"], done.code) == ("invalid_artifact", 6), (kept, done)
        assert f"training: {whole.name}" in done.document["reason"]


def test_lines_cut_off_between_two_of_them_are_missing_ids(xcfg, tmp_path: Path) -> None:
    done = compared(xcfg, tmp_path, ROWS, ROWS[:2])
    assert (done.document["status"], done.code) == ("invalid_identity", 6)
    assert "'s2' (rollout.jsonl line 3) is only on the rollout side (2 such in all)" in done.document["reason"]


@pytest.mark.parametrize("suffix", CONTAINERS)
def test_an_empty_file_is_refused(xcfg, tmp_path: Path, suffix: str) -> None:
    rollout = jsonl(tmp_path / "rollout", ROWS)
    whole = CONTAINERS[suffix](tmp_path / "training", ROWS)
    whole.write_bytes(b"")
    done = xcfg("compare", rollout, whole, "--json")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)
    assert f"training: {whole.name}: the file is empty" in done.document["reason"]


class Harmful:
    """Would leave a file behind where it is unpickled."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):
        return Path.touch, (self.witness,)


@pytest.mark.parametrize("suffix", [*CONTAINERS, ".ndjson"])
@pytest.mark.parametrize("protocol", [0, 2])
def test_a_pickle_under_another_name_is_never_opened(xcfg, tmp_path: Path, suffix: str, protocol: int) -> None:
    if suffix == ".pt":
        pytest.importorskip("xcfg_torch")
    witness = tmp_path / "ran"
    path = tmp_path / f"training{suffix}"
    path.write_bytes(pickle.dumps(Harmful(witness), protocol))
    done = xcfg("compare", jsonl(tmp_path / "rollout", ROWS), path, "--json")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6), done
    assert f"training: {path.name}" in done.document["reason"]
    assert not witness.exists()


def test_an_array_of_objects_is_a_pickle(xcfg, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    path = tmp_path / "training.npz"
    np.savez(
        path, id=np.array(["s0"]), response_ids=np.array([[1]]), logprobs=np.array([Harmful(witness)], dtype=object)
    )
    done = xcfg("compare", jsonl(tmp_path / "rollout", ROWS), path, "--json")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)
    assert "training.npz: array 'logprobs' cannot be read" in done.document["reason"]
    assert not witness.exists()


def test_a_pt_file_that_needs_more_than_tensors_is_refused(xcfg, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("xcfg_torch")
    witness = tmp_path / "ran"
    path = tmp_path / "training.pt"
    torch.save({"id": ["s0"], "response_ids": torch.ones(1, 1).long(), "logprobs": Harmful(witness)}, path)
    done = xcfg("compare", jsonl(tmp_path / "rollout", ROWS), path, "--json")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)
    assert "weights_only" in done.document["reason"]
    assert not witness.exists()


def test_widths_of_the_two_sides_may_differ(xcfg, tmp_path: Path) -> None:
    """-0.1 in float32 is -0.10000000149; the difference is that and not rounded away."""
    rows = [record(dtype="float32", logprobs=[-0.1, -0.1, -0.1])]
    paths = jsonl(tmp_path / "rollout", rows), npz(tmp_path / "training", rows)
    done = xcfg("compare", *paths, "--json", "--map", "training.dtype=dtype")
    assert done.document["metrics"]["max_abs_dlogp"] == pytest.approx(1.490116e-9, rel=1e-6)
    assert done.document["metrics"]["frac_unequal"] == 1.0


def test_a_folder_of_files_is_its_records_whatever_the_names(xcfg, tmp_path: Path) -> None:
    """Same document from one file, from three, and from the three with their names exchanged."""
    rows = [record(f"s{at}", rank=at % 2, logprobs=[-1.0, -2.0, -3.0 - at / 64]) for at in range(9)]
    training = [record(f"s{at}") for at in reversed(range(9))]
    one = compared(xcfg, tmp_path, rows, training).document
    parts = [rows[:2], rows[2:7], rows[7:]]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        folder = tmp_path / f"parts{order[0]}"
        folder.mkdir()
        (folder / "notes.txt").write_text("passed over")
        for name, part in zip("abc", order, strict=True):
            write(folder / f"{name}.jsonl", parts[part])
        many = xcfg("compare", folder, tmp_path / "training.jsonl", "--json").document
        assert {**many, "rollout": ""} == {**one, "rollout": ""}


def test_a_broken_file_among_others_is_named(xcfg, tmp_path: Path) -> None:
    folder = tmp_path / "rollout"
    folder.mkdir()
    write(folder / "a.jsonl", ROWS[:2])
    write(folder / "b.jsonl", "")
    done = xcfg("compare", folder, jsonl(tmp_path / "training", ROWS), "--json")
    assert (done.document["status"], done.document["reason"]) == (
        "invalid_artifact",
        "rollout: b.jsonl: the file is empty",
    )


def test_a_path_that_is_not_there_a_suffix_that_is_unknown_and_a_folder_without_files(xcfg, tmp_path: Path) -> None:
    good = jsonl(tmp_path / "training", ROWS)
    (tmp_path / "folder").mkdir()
    (tmp_path / "log.csv").write_text("id\n")
    for bad, said in (("none.jsonl", "cannot be read"), ("log.csv", "'.csv'"), ("folder", "no file of a known format")):
        for paths in ((tmp_path / bad, good), (good, tmp_path / bad)):
            done = xcfg("compare", *paths, "--json")
            assert (done.document["schema"], done.document["status"], done.code) == ("xcfg.error/1", "error", 2)
            (error,) = done.document["errors"]
            assert said in error["message"] and error["where"] == str(tmp_path / bad) and ".jsonl" in error["hint"]


def test_a_file_that_may_not_be_read(xcfg, tmp_path: Path, monkeypatch) -> None:
    real = Path.open

    def refuse(self, *arguments, **options):
        if self.suffix == ".jsonl":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *arguments, **options)

    good = jsonl(tmp_path / "training", ROWS)
    monkeypatch.setattr(Path, "open", refuse)
    done = xcfg("compare", good, good)
    assert done.code == 2 and "Permission denied" in done.err and "training.jsonl" in done.err


@pytest.mark.parametrize("name", ["batch.pkl", "batch.PICKLE"])
def test_a_pickle_by_its_suffix_is_never_opened(xcfg, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"not even looked at")
    done = xcfg("compare", path, path, "--json")
    assert (done.code, done.document["status"]) == (6, "invalid_artifact")
    assert f"{name}: a pickle runs code when it is opened" in done.document["reason"]


def test_a_torch_file_names_the_distribution_that_opens_it(xcfg, tmp_path: Path) -> None:
    path = tmp_path / "batch.pt"
    path.write_bytes(b"x")
    done = xcfg("--no-plugins", "compare", path, path, "--json")
    assert done.code == 2
    assert "xcfg-torch" in done.document["errors"][0]["hint"]
