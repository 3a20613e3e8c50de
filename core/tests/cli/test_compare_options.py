"""Options of ``xcfg compare``: columns, layout, dtype, contract, strictness, and what is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from xcfg.builtin.contracts import shipped_contracts
from xcfg.report.text import TokenText

from .recorded_files import compared, record, write

SHIPPED = next(iter(shipped_contracts()))
OTHER = {"response_ids": [5, 6, 7], "logprobs": [-1.0, -2.0, -3.5]}
FULL = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "logprobs_mode": "raw_logprobs",
    "mask": [1, 1, 1],
    "prompt_ids": [1],
    "position_ids": [1, 2, 3],
    "weight_version": 7,
}


def error(done):
    assert done.document["schema"] == "xcfg.error/1"
    assert done.document["code"] == done.code
    (found,) = done.document["errors"]
    return found


def both(tmp_path: Path):
    """One file that holds both sides under names of its own."""
    row = {"uid": "a", "tokens": [5, 6, 7], "sampler": [-1.0, -2.0, -3.0], "info": {"trainer": [-1.0, -2.0, -3.5]}}
    return write(tmp_path / "both.jsonl", [row])


SHARED = ("--map", "id=uid", "--map", "response_ids=tokens", "--dtype", "bf16")


def test_map_names_columns_of_both_sides_and_of_one(xcfg, tmp_path: Path) -> None:
    path = both(tmp_path)
    options = ("--map", "rollout.logprobs=sampler", "--map", "training.logprobs=info.trainer")
    done = xcfg("compare", path, path, "--json", *SHARED, *options)
    assert (done.document["status"], done.document["metrics"]["max_abs_dlogp"]) == ("fail", 0.5)
    assert done.document["formats"] == ["generic", "generic"]
    swapped = ("--map", "rollout.logprobs=info.trainer", "--map", "training.logprobs=sampler")
    done = xcfg("compare", path, path, "--json", *SHARED, *swapped)
    assert done.document["metrics"]["signed_mean_dlogp"] == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("logprobs", "'logprobs' is not FIELD=COLUMN"),
        ("=sampler", "is not FIELD=COLUMN"),
        ("logprobs=", "is not FIELD=COLUMN"),
        ("rollout.=sampler", "is not FIELD=COLUMN"),
        ("id=other", "'id' is mapped twice"),
        ("training.id=other", "'id' is mapped twice"),
    ],
)
def test_a_map_that_says_nothing_or_says_it_twice(xcfg, tmp_path: Path, option: str, said: str) -> None:
    path = both(tmp_path)
    done = xcfg("compare", path, path, "--json", *SHARED, "--map", option)
    assert (done.code, error(done)["where"]) == (2, "--map")
    assert said in error(done)["message"]


def test_a_column_that_is_not_there(xcfg, tmp_path: Path) -> None:
    path = both(tmp_path)
    done = xcfg("compare", path, path, "--json", *SHARED, "--map", "logprobs=samplr")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)
    done = xcfg("compare", path, write(tmp_path / "t.jsonl", [record()]), "--json", *SHARED, "--map", "logprobs=samplr")
    assert "rollout: both.jsonl line 1: column 'samplr' is missing (did you mean 'sampler'?" in done.document["reason"]


def test_an_unknown_format_and_a_layout_that_no_format_claims(xcfg, tmp_path: Path) -> None:
    path = both(tmp_path)
    done = xcfg("compare", path, path, "--json", "--format", "vrl")
    assert (done.code, error(done)["message"]) == (4, "unknown importer 'vrl', did you mean 'verl'?")
    done = xcfg("compare", path, path, "--json")
    assert done.code == 2
    assert "the fields info, sampler, tokens, uid are of no known format" in error(done)["message"]
    assert "--map FIELD=COLUMN" in error(done)["hint"]


SAME = {
    "the file twice": ("rollout.jsonl", ()),
    "by a symbolic link": ("symbolic.jsonl", ()),
    "by a hard link": ("hard.jsonl", ()),
    "by its folder": ("folder", ()),
    "with the column named": ("rollout.jsonl", ("--map", "training.logprobs=logprobs")),
    "with another column of no matter": ("rollout.jsonl", ("--map", "training.mask=flags")),
    "with the format named": ("rollout.jsonl", ("--format", "generic")),
}


@pytest.mark.parametrize("name", SAME)
def test_one_column_of_one_file_is_one_measurement(xcfg, tmp_path: Path, name: str) -> None:
    other, options = SAME[name]
    rollout = write(tmp_path / "rollout.jsonl", [record(flags=[1, 1, 1])])
    (tmp_path / "symbolic.jsonl").symlink_to(rollout)
    os.link(rollout, tmp_path / "hard.jsonl")
    (tmp_path / "folder").mkdir()
    os.link(rollout, tmp_path / "folder/part.jsonl")
    done = xcfg("compare", rollout, tmp_path / other, "--json", *options)
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)
    assert "one measurement and not two" in done.document["reason"]


def test_a_dtype_fills_in_and_may_not_contradict(xcfg, tmp_path: Path) -> None:
    silent = [record(dtype=None)]
    for name in ("float32", "fp32", "torch.float32"):
        done = compared(xcfg, tmp_path, silent, silent, "--dtype", name)
        assert (done.document["status"], done.document["dtype"]) == ("pass", "float32")
        assert "dtype" not in done.document["assumed"]
    for one in ("float32", "bfloat16"):  # the option speaks for the silent side alone, and the lower of both judges
        other = "bfloat16" if one == "float32" else "float32"
        done = compared(xcfg, tmp_path, silent, [record(dtype=one)], "--dtype", other)
        assert (done.document["status"], done.document["dtype"]) == ("pass", "bfloat16")
        assert "dtype" not in done.document["assumed"]
    stated = [record(dtype="bfloat16")]
    done = compared(xcfg, tmp_path, stated, stated, "--dtype", "float32")
    assert (done.code, error(done)["where"]) == (2, "rollout.jsonl line 1")
    assert error(done)["message"] == "rollout records state dtype bfloat16, --dtype says float32"
    done = compared(xcfg, tmp_path, silent, silent, "--dtype", "float8_e4m3fn")
    assert (done.document["status"], done.document["dtype"], done.code) == ("no_threshold", "float8_e4m3fn", 6)
    assert done.document["metrics"]["max_abs_dlogp"] == 0.0


def test_another_contract_judges(xcfg, tmp_path: Path) -> None:
    table = {
        "primary": "max_abs_dlogp",
        "rule": "value <= threshold",
        "clip_interval": [0.5, 1.5],
        "max_abs_dlogp": {"bfloat16": 0.5},
    }
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"schema": "xcfg.tolerance/1", "id": "mine", "version": "3", "dlogp": table}))
    done = compared(xcfg, tmp_path, [record()], [record(**OTHER)], "--contract", path)
    assert (done.document["status"], done.document["threshold"]) == ("pass", 0.5)
    assert done.document["clip_interval"] == [0.5, 1.5]
    assert (done.document["contract"]["id"], done.document["contract"]["version"]) == ("mine", "3")
    fails = compared(xcfg, tmp_path, [record()], [record(**OTHER)], "--contract", SHIPPED.ref.id)
    assert (fails.document["status"], fails.document["threshold"]) == ("fail", SHIPPED.max_abs_dlogp["bfloat16"])
    none = compared(xcfg, tmp_path, [record(dtype="float32")], [record(dtype="float32")], "--contract", path)
    assert none.document["status"] == "no_threshold"
    path.write_text(path.read_text().replace("<=", ">="))
    broken = compared(xcfg, tmp_path, [record()], [record()], "--contract", path)
    assert broken.code == 2 and "value >= threshold" in error(broken)["message"]
    assert compared(xcfg, tmp_path, [record()], [record()], "--contract", "ws9").code == 4


def test_strict_takes_nothing_for_granted(xcfg, tmp_path: Path) -> None:
    assert compared(xcfg, tmp_path, [record(**FULL)], [record(**FULL)], "--strict").document["status"] == "pass"
    for name in FULL:
        partial = {key: value for key, value in FULL.items() if key != name}
        loose = compared(xcfg, tmp_path, [record(**FULL)], [record(**partial)])
        assert (loose.document["status"], name in loose.document["assumed"]) == ("pass", True)
        strict = compared(xcfg, tmp_path, [record(**FULL)], [record(**partial)], "--strict")
        assert (strict.document["status"], strict.code) == ("invalid_identity", 6)
        assert name in strict.document["reason"] and "rollout.jsonl line 1" in strict.document["reason"]
    silent = compared(xcfg, tmp_path, [record(**FULL)], [record(**FULL, dtype=None)], "--strict")
    assert silent.document["reason"] == "strict: dtype not stated on both sides, first in training.jsonl line 1"


def test_unknown_names_and_wrong_usage(xcfg, tmp_path: Path) -> None:
    done = compared(xcfg, tmp_path, [record()], [record()], "--names", "trll")
    assert (done.code, error(done)["where"]) == (2, "--names")
    assert "did you mean 'trl'" in error(done)["message"]
    assert compared(xcfg, tmp_path, [record()], [record()], "--tokens", "-1").code == 2
    assert compared(xcfg, tmp_path, [record()], [record()], "--tokenizer", tmp_path).code == 2
    assert xcfg("compare", tmp_path / "rollout.jsonl", "--json").code == 2


def test_the_document_has_every_field(xcfg, tmp_path: Path) -> None:
    document = compared(xcfg, tmp_path, [record()], [record(**OTHER)], "--tokens", "2").document
    assert document.keys() >= {
        "dtype",
        "threshold",
        "active_tokens",
        "metrics",
        "worst",
        "per_rank",
        "findings",
        "assumed",
    }
    assert document["worst"].keys() == {
        "sequence", "position", "token", "rollout_logp", "train_logp", "rollout_rank", "train_rank",
    }  # fmt: skip
    assert all(
        item.keys() >= {"class", "subclass", "rule", "evidence", "advice", "confidence"}
        for item in document["findings"]
    )
    (rank,) = document["per_rank"]
    assert rank.keys() >= {"rollout_rank", "train_rank", "active_tokens", "metrics"}
    assert rank["rollout"].keys() >= {"parallel", "compute_dtype", "padding_side", "cache_mode"}
    assert [item["position"] for item in document["tokens"]] == [2, 0]
    assert [near["dlogp"] for near in document["tokens"][0]["around"]] == [0.0, 0.0, -0.5]
    assert compared(xcfg, tmp_path, [record()], [record()], "--tokens", "0").document["tokens"] == []


def test_what_people_read(xcfg, tmp_path: Path) -> None:
    rollout, training = write(tmp_path / "r.jsonl", [record()]), write(tmp_path / "t.jsonl", [record(**OTHER)])
    done = xcfg("compare", rollout, training, "--per-rank")
    first, second, third = done.out.splitlines()[:3]
    limit = f"{SHIPPED.max_abs_dlogp['bfloat16']:.3g}"
    assert first == f"FAIL: max |d| 0.5 beyond the bfloat16 limit {limit} over 3 active tokens"
    assert second.startswith("not stated by both sides, assumed: checkpoint, logprobs_mode, ")
    assert "position 2, token 7: rollout -3.000000 (rank 0), training -3.500000 (rank 0), d -0.500000" in third
    assert "rollout rank" in done.out
    assert not done.err


def test_a_token_beyond_the_vocabulary_has_no_text(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a")).save(
        str(tmp_path / "tokenizer.json")
    )
    text = TokenText.load(tmp_path)
    assert [text.of(token) for token in (1, 2, 2**32, 2**62, -1)] == ["b", "", "", "", ""]
