"""Defects of recorded logprobs through the command line: status, exit code, and the place in the reason."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from xcfg.builtin.contracts import shipped_contracts

from .recorded_files import compared, record, write

ARTIFACT, IDENTITY, NOT_FINITE = "invalid_artifact", "invalid_identity", "non_finite"
R, T = "rollout.jsonl line ", "training.jsonl line "
GOOD = [record("a"), record("b")]
LINE = '{"id": "b", "response_ids": [5], "logprobs": [-1.0], "dtype": "bfloat16"}\n'


def second(**fields):
    return [record("a"), record(**{"id": "b", **fields})]


DEFECTS = {
    # unreadable, truncated, not the schema
    "empty file": (GOOD, "", ARTIFACT, ["training: training.jsonl", "the file is empty"]),
    "blank lines only": (GOOD, "\n \n", ARTIFACT, ["training: training.jsonl", "holds no record"]),
    "both files empty": ("", "", ARTIFACT, ["rollout: rollout.jsonl", "the file is empty"]),
    "truncated line": (GOOD, LINE + LINE[:30], ARTIFACT, ["training: " + T + "2", "not JSON", "copied whole"]),
    "not UTF-8": (GOOD, LINE.encode().replace(b"bf", b"\xff"), ARTIFACT, [T + "1", "not UTF-8"]),
    "not JSON": (GOOD, LINE + "logprobs: [-1.0]\n", ARTIFACT, [T + "2", "not JSON"]),
    "not an object": (GOOD, LINE + "[1]\n", ARTIFACT, [T + "2", "not a JSON object"]),
    "duplicate key": (GOOD, LINE.replace('"dtype"', '"id": "c", "dtype"'), ARTIFACT, [T + "1", "'id' appears twice"]),
    "missing field": (GOOD, LINE + '{"id": "c", "logprobs": []}\n', ARTIFACT, [T + "2", "'response_ids' is missing"]),
    # wrong type
    "id is null": (GOOD, second(id=None), ARTIFACT, [T + "2", "'id' is null"]),
    "id is a fraction": (GOOD, second(id=1.5), ARTIFACT, [T + "2", "id is float 1.5"]),
    "id is half a character": (GOOD, second(id="\ud800"), ARTIFACT, [T + "2", "lone surrogate"]),
    "logprobs are text": (GOOD, second(logprobs=["x", -1, -1]), ARTIFACT, [T + "2", "logprobs[0]", "'x'"]),
    "tokens are fractions": (GOOD, second(response_ids=[5.0, 6, 7]), ARTIFACT, [T + "2", "response_ids[0]"]),
    "negative token": (GOOD, second(response_ids=[5, -1, 7]), ARTIFACT, [T + "2", "response_ids[1] is -1"]),
    "mask is not of 0 and 1": (GOOD, second(mask=[1, 2, 0]), ARTIFACT, [T + "2", "mask[1] is 2"]),
    "temperature is infinite": (GOOD, second(temperature=math.inf), ARTIFACT, [T + "2", "temperature is inf"]),
    # lengths
    "fewer logprobs than tokens": (
        second(logprobs=[-1.0]),
        GOOD,
        ARTIFACT,
        ["'b'", R + "2", "1 values, response_ids 3"],
    ),
    "shorter mask": (GOOD, second(mask=[1]), ARTIFACT, ["training sequence 'b'", T + "2", "mask has 1 values"]),
    "positions": (GOOD, second(position_ids=[1]), ARTIFACT, [T + "2", "position_ids has 1 values"]),
    "versions": (GOOD, second(weight_version=[1, 1]), ARTIFACT, [T + "2", "weight_version has 2 values"]),
    "top_logprobs": (GOOD, second(top_logprobs=[{"5": -1.0}]), ARTIFACT, [T + "2", "top_logprobs has 1 values"]),
    # twice, or not there
    "id twice": (GOOD, [*GOOD, record("a")], ARTIFACT, ["training has sequence 'a' twice", T + "1", T + "3"]),
    "id twice as text and number": (
        [record(1)],
        [record(1), record("1")],
        ARTIFACT,
        ["sequence '1' twice", T + "1", T + "2"],
    ),
    "id twice on a rank": ([record(rank=0), record(rank=0)], [record()], ARTIFACT, ["'a' on rank 0 twice", R + "2"]),
    "rank missing": ([record("a", rank=0), record("b", rank=2)], GOOD, ARTIFACT, ["rank 2 and none of rank 1"]),
    "rank on some records": ([record("a", rank=0), record("b")], GOOD, ARTIFACT, ["some do not, as " + R + "2"]),
    "absurd rank": ([record("a", rank=10**30), record("b")], GOOD, ARTIFACT, ["'a'", R + "1", "rank is 1000000000"]),
    # a probability above one
    "positive beyond rounding": (
        GOOD,
        second(logprobs=[-1.0, 0.0011, -3.0]),
        ARTIFACT,
        ["training sequence 'b'", T + "2", "above 0.001", "first 0.0011 at position 1"],
    ),
    # identity
    "id on the rollout side only": (GOOD, [record("a")], IDENTITY, [f"'b' ({R}2) is only on the rollout side"]),
    "id on the training side only": (GOOD[1:], GOOD, IDENTITY, [f"'a' ({T}1) is only on the training side"]),
    "no id in common": (GOOD[:1], GOOD[1:], IDENTITY, ["only on the rollout side", "only on the training side"]),
    "ids differ in normalisation": ([record("\u00e9")], [record("e\u0301")], IDENTITY, ["only on the rollout side"]),
    "other token ids": (
        GOOD,
        second(response_ids=[5, 9, 7]),
        IDENTITY,
        [f"response_ids differs in sequence 'b' at index 1: rollout ({R}2) 6, training ({T}2) 9"],
    ),
    "other lengths": (
        GOOD,
        second(response_ids=[5, 6], logprobs=[-1, -2]),
        IDENTITY,
        [f"response_ids of sequence 'b' has 3 values in rollout ({R}2), 2 in training ({T}2)"],
    ),
    "other prompts": (
        second(prompt_ids=[1, 2]),
        second(prompt_ids=[1, 3]),
        IDENTITY,
        ["prompt_ids differs in sequence 'b' at index 1"],
    ),
    "masks differ": (
        second(mask=[1, 0, 1]),
        second(mask=[1, 1, 1]),
        IDENTITY,
        ["mask differs in sequence 'b' at index 1"],
    ),
    "mask on one side only": (GOOD, second(mask=[1, 1, 0]), IDENTITY, ["mask differs in sequence 'b' at index 2"]),
    "positions differ": (
        second(position_ids=[3, 4, 5]),
        second(position_ids=[3, 4, 6]),
        IDENTITY,
        ["position_ids differs in sequence 'b' at index 2", "5", "6"],
    ),
    "positions jump on one side": (GOOD, second(position_ids=[3, 4, 6]), IDENTITY, [T + "2", "from 4 to 6 at index 2"]),
    "weight versions differ": (
        second(weight_version=3),
        second(weight_version=4),
        IDENTITY,
        ["weight_version differs in sequence 'b' from position 0", "'3'", "'4'", R + "2", T + "2"],
    ),
    "weight version changes inside": (
        second(weight_version=[3, 3, 4]),
        second(weight_version=[3, 3, 4]),
        IDENTITY,
        [f"changes inside sequence 'b' of rollout ({R}2) at position 2"],
    ),
    "temperature on one side": (
        second(temperature=0.6),
        GOOD,
        IDENTITY,
        ["temperature differs: rollout 0.6, training 1.0", R + "2"],
    ),
    "modes differ": (
        second(logprobs_mode="raw_logprobs"),
        second(logprobs_mode="processed_logprobs"),
        IDENTITY,
        ["logprobs_mode differs"],
    ),
    # not finite
    "NaN": (GOOD, second(logprobs=[-1.0, math.nan, -3.0]), NOT_FINITE, ["'b'", T + "2", "first nan at position 1"]),
    "null": (second(logprobs=[-1.0, -2.0, None]), GOOD, NOT_FINITE, ["rollout sequence 'b'", R + "2", "at position 2"]),
    "infinite": (GOOD, second(logprobs=[math.inf, -2.0, -3.0]), NOT_FINITE, [T + "2", "first inf at position 0"]),
    "probability zero": (GOOD, second(logprobs=[-math.inf, -2, -3]), NOT_FINITE, [T + "2", "first -inf at position 0"]),
    "NaN in a replica": (
        [record(rank=0), record(rank=1, logprobs=[-1, None, -3])],
        [record()],
        NOT_FINITE,
        [R + "2", "position 1"],
    ),
    # nothing active
    "all masked": (
        [record(mask=[0, 0, 0])],
        [record(mask=[0, 0, 0])],
        "zero_active_tokens",
        ["none of 3 response tokens"],
    ),
    "all masked on every rank": (
        [record(mask=[0, 0, 0], rank=rank) for rank in (0, 1)],
        [record(mask=[0, 0, 0])],
        "zero_active_tokens",
        ["none of 3"],
    ),
    "no response token": (
        [record(response_ids=[], logprobs=[])],
        [record(response_ids=[], logprobs=[])],
        "zero_active_tokens",
        ["none of 0"],
    ),
    # no limit
    "no dtype": ([record(dtype=None)], [record(dtype="")], "no_threshold", ["unknown compute dtype"]),
    "dtype without a row": (
        [record(dtype="fp8")],
        [record()],
        "no_threshold",
        ["no max_abs_dlogp row", "'float8_e4m3fn'"],
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defect(xcfg, tmp_path: Path, name: str) -> None:
    rollout, training, status, said = DEFECTS[name]
    done = compared(xcfg, tmp_path, rollout, training)
    assert (done.document["status"], done.code) == (status, 6), done
    assert done.document["schema"] == "xcfg.compare/1"
    for part in said:
        assert part in done.document["reason"]
    assert not done.document["metrics"] or status == "no_threshold"
    assert not done.document["tokens"]


@pytest.mark.parametrize("name", ["truncated line", "other token ids", "NaN", "all masked", "no dtype"])
def test_what_people_read_of_a_defect(xcfg, tmp_path: Path, name: str) -> None:
    rollout, training, status, said = DEFECTS[name]
    paths = write(tmp_path / "rollout.jsonl", rollout), write(tmp_path / "training.jsonl", training)
    done = xcfg("compare", *paths)
    assert (done.code, done.err) == (6, "")
    first = done.out.splitlines()[0]
    assert first.startswith(status.upper().replace("_", " ") + ": ")
    assert all(part in first for part in said)


FINE = {
    "NaN in an inactive place": (second(mask=[1, 0, 1]), second(mask=[1, 0, 1], logprobs=[-1.0, math.nan, -3.0])),
    "null in an inactive place": (second(mask=[1, 0, 1]), second(mask=[1, 0, 1], logprobs=[-1.0, None, -3.0])),
    "positive in an inactive place": (second(mask=[1, 0, 1]), second(mask=[1, 0, 1], logprobs=[-1.0, 3.0, -3.0])),
    "positive within rounding": (second(logprobs=[0.0, -2, -3]), second(logprobs=[1e-3, -2, -3])),
    "a mask of ones on one side": (GOOD, second(mask=[True, True, True])),
    "no response token in one of two": (
        second(response_ids=[], logprobs=[]),
        second(response_ids=[], logprobs=[]),
    ),
    "ids as text and numbers": ([record("1"), record(2)], [record(1), record("2")]),
    "ids beyond the first plane": (
        [record("\U0001f600"), record("ü" * 5000)],
        [record("ü" * 5000), record("\U0001f600")],
    ),
    "a temperature of one on one side": (second(temperature=1), GOOD),
    "null fields": (second(mask=None, rank=None, temperature=None), GOOD),
    "unknown fields": (second(reward=1.0, advantages=[0, 0, 0]), GOOD),
    "the other order": (GOOD, GOOD[::-1]),
    "large token ids": (second(response_ids=[5, 2**62, 7]), second(response_ids=[5, 2**62, 7])),
}


@pytest.mark.parametrize("name", FINE)
def test_no_defect(xcfg, tmp_path: Path, name: str) -> None:
    done = compared(xcfg, tmp_path, *FINE[name])
    assert (done.document["status"], done.code, done.document["reason"]) == ("pass", 0, "")


def finding(document, rule):
    return next((item for item in document["findings"] if item["rule"] == rule), None)


def test_runs_of_exact_zero_are_a_finding(xcfg, tmp_path: Path) -> None:
    zeros = {"response_ids": [1, 2, 3, 4, 5], "logprobs": [-1.0, 0.0, 0.0, 0.0, -2.0]}
    done = compared(xcfg, tmp_path, [record(**zeros)], [record(**zeros)])
    found = finding(done.document, "exact_zero_logprobs")
    assert (done.document["status"], found["class"], found["subclass"]) == ("pass", "logical", "observation")
    assert found["evidence"]["first"] == {"sequence": "a", "position": 1}
    assert (found["evidence"]["longest_run"], found["evidence"]["tokens"]) == (3, 3)
    broken = {**zeros, "logprobs": [0.0, 0.0, -1.0, 0.0, 0.0]}
    done = compared(xcfg, tmp_path, [record(**broken)], [record(**broken)])
    assert finding(done.document, "exact_zero_logprobs") is None


def test_logprobs_stored_in_bf16_are_coarser_than_the_float32_limit(xcfg, tmp_path: Path) -> None:
    """bfloat16 keeps 8 bits: between 8 and 16 its neighbours are 2**-4 apart."""
    limit = next(iter(shipped_contracts())).max_abs_dlogp["float32"]
    coarse = [-8.0625, -9.3125, -0.49609375]
    fine = [-8.0626, -9.3126, -0.4961]
    done = compared(
        xcfg, tmp_path, [record(dtype="float32", logprobs=coarse)], [record(dtype="float32", logprobs=fine)]
    )
    assert done.document["status"] == "fail"
    found = finding(done.document, "logprobs_coarser_than_limit")
    assert (found["evidence"]["side"], found["evidence"]["stored_dtype"]) == ("rollout", "bfloat16")
    assert (found["evidence"]["spacing"], found["evidence"]["limit"]) == (0.0625, limit)
    assert found["evidence"]["spacing_over_limit"] == pytest.approx(0.0625 / limit)
    assert "record them in float32" in found["advice"]
    other = compared(xcfg, tmp_path, [record(dtype="float32", logprobs=fine)], [record(dtype="float32", logprobs=fine)])
    assert finding(other.document, "logprobs_coarser_than_limit") is None


def test_mixed_dtypes_are_judged_by_the_lowest(xcfg, tmp_path: Path) -> None:
    """One side's ranks differ, and so do the two sides: float32 and bfloat16 against float16."""
    rollout = [record("a", rank=0, dtype="float32"), record("b", rank=1, dtype="bf16")]
    done = compared(xcfg, tmp_path, rollout, second(dtype="torch.float16"))
    assert (done.document["status"], done.document["dtype"]) == ("pass", "bfloat16")
    assert finding(done.document, "compute_dtype_by_rank")["evidence"]["side"] == "rollout"
    third = compared(xcfg, tmp_path, [record(dtype="float32")], [record(dtype="float16")])
    assert third.document["dtype"] == "float16"


def test_replicas_that_disagree_are_a_finding_and_the_worst_judges(xcfg, tmp_path: Path) -> None:
    done = compared(xcfg, tmp_path, [record(rank=0), record(rank=1, logprobs=[-1.0, -2.0, -3.5])], [record()])
    assert (done.document["status"], done.code) == ("fail", 1)
    assert (done.document["worst"]["rollout_rank"], done.document["worst"]["position"]) == (1, 2)
    assert finding(done.document, "replicas_bitwise_equal")["evidence"]["max_abs_difference"] == 0.5


def test_a_stated_dtype_and_none_on_the_other_side(xcfg, tmp_path: Path) -> None:
    done = compared(xcfg, tmp_path, GOOD, second(dtype=None))
    assert (done.document["status"], done.document["dtype"]) == ("pass", "bfloat16")
    assert "dtype" in done.document["assumed"]


def test_of_two_files_of_one_name_the_side_is_told(xcfg, tmp_path: Path) -> None:
    for side in ("rollout", "training"):
        (tmp_path / side).mkdir()
        write(tmp_path / side / "rank0.jsonl", GOOD if side == "rollout" else LINE + "{")
    done = xcfg("compare", tmp_path / "rollout", tmp_path / "training", "--json")
    assert done.document["reason"].startswith("training: rank0.jsonl line 2: not JSON")


PRECEDENCE = {
    "artifact before identity": ({"logprobs": [0.5, -1, -1]}, {"response_ids": [1, 2, 3]}, ARTIFACT),
    "artifact before not finite": ({"logprobs": [0.5, -1, -1]}, {"logprobs": [None, -1, -1]}, ARTIFACT),
    "identity before not finite": ({"response_ids": [1, 2, 3]}, {"logprobs": [None, -1, -1]}, IDENTITY),
    "identity before nothing active": ({"response_ids": [1, 2, 3], "mask": [0, 0, 0]}, {"mask": [0, 0, 0]}, IDENTITY),
    "not finite before no dtype": ({"logprobs": [None, -1, -1], "dtype": None}, {"dtype": None}, NOT_FINITE),
}


@pytest.mark.parametrize("name", PRECEDENCE)
def test_precedence(xcfg, tmp_path: Path, name: str) -> None:
    first, second_, status = PRECEDENCE[name]
    plain = {key: value for key, value in {**first, **second_}.items() if key in ("mask", "dtype")}
    done = compared(
        xcfg, tmp_path, [record("a", **plain), record("b", **plain)],
        [record("a", **{**plain, **first}), record("b", **{**plain, **second_})],
    )  # fmt: skip
    assert (done.document["status"], done.code) == (status, 6)


def test_nothing_active_before_no_dtype(xcfg, tmp_path: Path) -> None:
    masked = [record(mask=[0, 0, 0], dtype=None)]
    assert compared(xcfg, tmp_path, masked, masked).document["status"] == "zero_active_tokens"
