from __future__ import annotations

import hashlib
import json

import pytest

from xcfg.plugin.checkpoint import digest_checkpoint


def by_hand(folder, names):
    each = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    return hashlib.sha256(json.dumps(each, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_weights_and_tokenizer_are_digested_apart(tmp_path):
    for name in ("model.safetensors", "config.json", "tokenizer.json", "README.md"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    found = digest_checkpoint(tmp_path)
    assert found.weights == by_hand(tmp_path, ["config.json", "model.safetensors"])
    assert found.tokenizer == by_hand(tmp_path, ["tokenizer.json"])


@pytest.mark.parametrize("name", ["model-00001-of-00002.safetensors", "config.json", "model.safetensors.index.json"])
def test_any_change_of_a_weight_file_counts(tmp_path, name):
    (tmp_path / name).write_bytes(b"a")
    before = digest_checkpoint(tmp_path)
    (tmp_path / name).write_bytes(b"b")
    assert digest_checkpoint(tmp_path).weights != before.weights


def test_no_tokenizer_is_unknown_and_no_folder_is_an_error(tmp_path):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert digest_checkpoint(tmp_path).tokenizer == ""
    with pytest.raises(FileNotFoundError, match="absent"):
        digest_checkpoint(tmp_path / "absent")
