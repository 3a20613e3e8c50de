"""A file or a folder with its readers: what is read, in which order, and what is no source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xcfg.errors import ArtifactError, EnvironmentFault, InvalidInput
from xcfg.importers.formats import json_file, jsonl
from xcfg.importers.source import Source

READERS = {".jsonl": jsonl.read, ".jsonl.gz": jsonl.read, ".json": json_file.read}


def _source(*paths: Path) -> Source:
    return Source(paths=paths, readers=READERS)


def test_a_folder_is_its_known_files_by_name(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.JSONL", "c.json", "notes.txt"):
        (tmp_path / name).write_text(f'{{"id": "{name}"}}')
    (tmp_path / "deeper.jsonl").mkdir()
    (tmp_path / "deeper.jsonl" / "d.jsonl").write_text('{"id": "d"}')
    source = _source(tmp_path)
    assert [row.fields["id"] for row in source.rows()] == ["a.JSONL", "b.jsonl", "c.json"]
    assert [row.place for row in source.rows()] == ["a.JSONL line 1", "b.jsonl line 1", "c.json"]
    both = _source(tmp_path / "c.json", tmp_path / "b.jsonl")
    assert [row.fields["id"] for row in both.rows()] == ["c.json", "b.jsonl"]


def test_the_first_fields_are_those_of_the_first_row_alone(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "logprobs": []}\nbroken')
    assert _source(tmp_path / "a.jsonl").first_fields() == {"id", "logprobs"}


@pytest.mark.parametrize("content", ["", "\n\n", "[]"])
def test_a_file_without_a_record_is_no_artifact(tmp_path: Path, content: str) -> None:
    name = "a.json" if content == "[]" else "a.jsonl"
    (tmp_path / name).write_text(content)
    with pytest.raises(ArtifactError, match=rf"{name}: the file (is empty|holds no record)"):
        list(_source(tmp_path / name).rows())
    with pytest.raises(ArtifactError):
        _source(tmp_path).first_fields()


def test_what_is_no_source_is_a_wrong_option(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    for path, words in (
        (tmp_path / "absent.jsonl", "cannot be read: No such file or directory"),
        (tmp_path / "notes.txt", "the suffix '.txt' is of no known format"),
        (tmp_path / "folder", "the folder has no file of a known format"),
    ):
        with pytest.raises(InvalidInput) as raised:
            _source(path)
        (fault,) = raised.value.faults
        assert (fault.where, fault.message) == (str(path), words)
        assert fault.hint == "a file ends in one of .json, .jsonl, .jsonl.gz"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_a_wrong_option(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(InvalidInput, match="Permission denied"):
        _source(path)


def test_a_file_that_vanishes_is_the_machines_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}")
    source = _source(path)
    path.unlink()
    with pytest.raises(EnvironmentFault, match="cannot be read: No such file"):
        list(source.rows())
