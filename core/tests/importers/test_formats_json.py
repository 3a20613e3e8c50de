"""JSONL and JSON: rows, their places, and every way in which such a file is broken."""

from __future__ import annotations

import gzip
import json
import math
import pickle
import tracemalloc
from pathlib import Path

import pytest

from xcfg.importers.formats import json_file, jsonl

RECORD = {"id": "a", "response_ids": [1, 2], "logprobs": [-0.5, None], "nested": {"x": [1]}}


def test_jsonl_rows_are_what_json_wrote(write) -> None:
    path = write("r.jsonl", json.dumps(RECORD) + "\n\n  \r\n" + json.dumps({"id": "b"}) + "\n\n")
    first, second = jsonl.read(path)
    assert (first.place, first.fields) == ("r.jsonl line 1", RECORD)
    assert (second.place, second.fields) == ("r.jsonl line 4", {"id": "b"})


def test_a_last_line_without_an_end_and_a_byte_order_mark_are_read(write) -> None:
    path = write("r.jsonl", b"\xef\xbb\xbf" + '{"id": "ä"}\r\n{"id": "b"}'.encode())
    assert [found.fields["id"] for found in jsonl.read(path)] == ["ä", "b"]


def test_numbers_that_are_not_finite_are_values(write) -> None:
    path = write("r.jsonl", '{"logprobs": [NaN, Infinity, -Infinity, 1e999, -1e999, 1e-999]}\n')
    (found,) = jsonl.read(path)
    nan, *rest = found.fields["logprobs"]
    assert math.isnan(nan)
    assert rest == [math.inf, -math.inf, math.inf, -math.inf, 0.0]


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        (b'{"id": "a", "id": "b"}\n', "r.jsonl line 2", "key 'id' appears twice"),
        (b'{"x": {"y": 1, "z": 2, "y": 3}}\n', "r.jsonl line 2", "key 'y' appears twice"),
        (b'{"id": "\xff"}\n', "r.jsonl line 2", "not UTF-8 text: invalid start byte at byte 8"),
        (b"[1, 2]\n", "r.jsonl line 2", "the line is not a JSON object"),
        (b"null\n", "r.jsonl line 2", "the line is not a JSON object"),
        (b'{"a": 1} {"a": 2}\n', "r.jsonl line 2", "not JSON: Extra data at column 10"),
        (b"{'a': 1}\n", "r.jsonl line 2", "not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}\n", "r.jsonl line 2", "not a JSON record"),
        (b'{"a": ' + b"[" * 200_000 + b"\n", "r.jsonl line 2", "not a JSON record"),
        (b"\x00\n", "r.jsonl line 2", "not JSON"),
    ],
)
def test_a_broken_line_is_named(write, refused, line: bytes, place: str, words: str) -> None:
    path = write("r.jsonl", b'{"id": "first"}\n' + line)
    fault = refused(lambda: jsonl.read(path))
    assert fault.where == place
    assert words in fault.message


def test_a_file_cut_off_says_so(write, refused) -> None:
    whole = (json.dumps(RECORD) + "\n").encode()
    fault = refused(lambda: jsonl.read(write("r.jsonl", whole * 2 + whole[:-9])))
    assert fault.where == "r.jsonl line 3"
    assert "ends inside this line" in fault.hint


def test_gzip_is_read_and_its_truncation_named(write, refused) -> None:
    packed = gzip.compress((json.dumps(RECORD) + "\n").encode() * 3)
    assert [found.place for found in jsonl.read(write("r.jsonl.gz", packed))] == [
        f"r.jsonl.gz line {n}" for n in (1, 2, 3)
    ]
    assert "not a whole gzip file" in refused(lambda: jsonl.read(write("cut.jsonl.gz", packed[:-12]))).message
    assert "not a whole gzip file" in refused(lambda: jsonl.read(write("no.jsonl.gz", b'{"id": 1}\n'))).message


def test_lines_are_read_one_at_a_time(write) -> None:
    rows = jsonl.read(write("r.jsonl", '{"id": "a"}\nbroken\n'))
    assert next(rows).fields == {"id": "a"}


def test_memory_does_not_grow_with_the_file(write) -> None:
    line = json.dumps({"id": "a", "logprobs": [-1.25] * 2000}) + "\n"
    path = write("r.jsonl", line * 300)  # 4.8 MB of text, some 19 MB as Python floats and lists
    tracemalloc.start()
    count = sum(1 for _ in jsonl.read(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 300
    assert peak < 1_000_000


@pytest.mark.parametrize("read", [jsonl.read, json_file.read])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [{"id": ["a"]}, [1, 2], print])
def test_a_pickle_is_refused_by_name(write, refused, read, protocol: int, value: object) -> None:
    path = write("r.jsonl", pickle.dumps(value, protocol))
    assert "a pickle" in refused(lambda: read(path)).message


def test_json_arrays_and_columns_and_one_record(write) -> None:
    records = [{"id": "a", "logprobs": [-1.0]}, {"id": "b", "logprobs": []}]
    listed = list(json_file.read(write("r.json", "\ufeff" + json.dumps(records, indent=2))))
    assert [found.fields for found in listed] == records
    assert [found.place for found in listed] == ["r.json row 0", "r.json row 1"]
    columns = {"id": ["a", "b"], "logprobs": [[-1.0], []]}
    assert [found.fields for found in json_file.read(write("c.json", json.dumps(columns)))] == records
    (one,) = json_file.read(write("one.json", json.dumps(records[0])))
    assert (one.place, one.fields) == ("one.json", records[0])
    assert list(json_file.read(write("none.json", "[]"))) == []


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('[{"id": 1},\n {"id": 2, "id": 3}]', "r.json", "key 'id' appears twice"),
        ('[{"id": 1},\n {"id": 2]', "r.json line 2", "not JSON"),
        ('{"id": 1}\n{"id": 2}', "r.json line 2", "not JSON: Extra data at column 1"),
        ("", "r.json line 1", "not JSON"),
        ("3", "r.json", "neither an array of objects nor an object of columns"),
        ('[{"id": 1}, 2]', "r.json row 1", "the item is not a JSON object"),
        ('{"id": ["a"], "logprobs": [[], []]}', "r.json", "columns of different lengths: id 1, logprobs 2"),
    ],
)
def test_broken_json_is_named(write, refused, text: str, place: str, words: str) -> None:
    fault = refused(lambda: json_file.read(write("r.json", text)))
    assert fault.where == place
    assert words in fault.message


def test_jsonl_under_the_name_of_json_gets_a_hint(write, refused) -> None:
    assert ".jsonl" in refused(lambda: json_file.read(write("r.json", '{"id": 1}\n{"id": 2}\n'))).hint
    assert ".json" in refused(lambda: jsonl.read(write("r.jsonl", "[{}]"))).hint


def test_an_invalid_byte_of_json_is_named(write, refused) -> None:
    path: Path = write("r.json", b'["\xff"]')
    assert refused(lambda: json_file.read(path)).message == "not UTF-8 text: invalid start byte at byte 2"
