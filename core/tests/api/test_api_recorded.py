"""The same logprobs as arrays and in files: ``xcfg compare`` and the call say the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xcfg import compare_logprobs
from xcfg.cli.entry import main
from xcfg.model.codec import unstructure


def write(path, names, tokens, logprobs, masks):
    rows = zip(names, tokens, logprobs, masks, strict=True)
    records = [
        {"id": name, "response_ids": token.tolist(), "logprobs": shown(logp), "mask": mask.tolist()}
        for name, token, logp, mask in rows
    ]
    path.write_text("".join(json.dumps(item) + "\n" for item in records))
    return path


def shown(logprobs):
    """As JSON numbers; NaN, which JSON has not, as null."""
    return [None if np.isnan(value) else value for value in logprobs.astype(np.float64).tolist()]


@pytest.fixture
def document(tmp_path, capfd, contract_file):
    """What ``xcfg compare`` says of rows written to two files in opposite orders."""

    def call(names, tokens, rollout, training, masks):
        left = write(tmp_path / "rollout.jsonl", names, tokens, rollout, masks)
        right = write(tmp_path / "train.jsonl", *(items[::-1] for items in (names, tokens, training, masks)))
        with pytest.raises(SystemExit):
            main(["compare", str(left), str(right), "--dtype", "bf16", "--contract", str(contract_file), "--json"])
        return json.loads(capfd.readouterr().out)

    return call


SHARED = ("dtype", "threshold", "limits", "clip_interval", "contract", "active_tokens", "metrics", "worst")


def same_as_document(found, said):
    assert found.status.value == said["status"]
    plain = unstructure(found)
    for name in SHARED:
        assert plain[name] == said[name], name
    made = [item for item in said["findings"] if item["subclass"] == "observation"]
    assert [item["rule"] for item in plain["findings"] if item["subclass"] == "observation"] == [
        item["rule"] for item in made
    ]


@pytest.mark.parametrize("drift", [0.01, 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_bit_is_that_of_the_command(document, contract, ragged, drift, dtype):
    rollout, training, masks = ragged(seed=5, rows=40, drift=drift, dtype=dtype)
    names = [f"prompt {place // 4} sample {place % 4}" for place in range(40)]
    tokens = [np.arange(len(row)) + 10 * place for place, row in enumerate(rollout)]
    found = compare_logprobs(
        rollout, training, mask=masks, token_ids=tokens, sequence_ids=names, dtype="bf16", contract=contract
    )
    same_as_document(found, document(names, tokens, rollout, training, masks))
    assert len(found.metrics) == 27


@pytest.mark.parametrize("value", [np.nan, 0.5])
@pytest.mark.parametrize("active", [False, True])
def test_values_that_may_not_be_compared_have_the_status_of_the_command(document, contract, ragged, value, active):
    rollout, training, masks = ragged(seed=6)
    training[3][5], masks[3][5] = value, active
    names = [f"s{place}" for place in range(len(rollout))]
    tokens = [np.arange(len(row)) for row in rollout]
    found = compare_logprobs(rollout, training, mask=masks, sequence_ids=names, dtype="bf16", contract=contract)
    said = document(names, tokens, rollout, training, masks)
    assert found.status.value == said["status"]
    assert not active or "'s3' at position 5" in found.reason


def test_nothing_active_has_the_status_of_the_command(document, contract, ragged):
    rollout, training, masks = ragged(seed=7)
    masks = [np.zeros(len(row), bool) for row in rollout]
    names, tokens = [f"s{place}" for place in range(len(rollout))], [np.arange(len(row)) for row in rollout]
    said = document(names, tokens, rollout, training, masks)
    found = compare_logprobs(rollout, training, mask=masks, dtype="bf16", contract=contract)
    assert found.status.value == said["status"] == "zero_active_tokens"


def test_padded_zeros_and_one_off_are_found_as_the_command_finds_them(document, contract):
    rng = np.random.default_rng(8)
    rollout = [-rng.exponential(1, 50) - 0.01 for _ in range(3)]
    training = [np.roll(row, 1) for row in rollout]
    training[2][10:14] = 0.0
    names, masks = ["a", "b", "c"], [np.ones(50, bool)] * 3
    tokens = [np.arange(50)] * 3
    found = compare_logprobs(rollout, training, sequence_ids=names, dtype="bf16", contract=contract)
    said = document(names, tokens, rollout, training, masks)
    assert [item.rule for item in found.findings] == ["exact_zero_logprobs", "off_by_one_shift"]
    recorded = {item["rule"]: item["evidence"] for item in said["findings"]}
    for finding in found.findings:
        assert unstructure(finding.evidence) == recorded[finding.rule]
