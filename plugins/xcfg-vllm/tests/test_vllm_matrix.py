"""Every value of the matrix is applied and observed, refused with its reason, or observed to be another one.

With ``XCFG_MATRIX_OUT`` set to a folder, each trial leaves its rows there as JSON.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.full, pytest.mark.timeout(1800)]
pytest.importorskip("vllm", reason="vllm is not installed")
pytest.importorskip("torch", reason="torch is not installed")

import numpy as np  # noqa: E402

from xcfg_vllm.testing.adapter import make_adapter, merged  # noqa: E402
from xcfg_vllm.testing.emulation import emulated_logprobs  # noqa: E402
from xcfg_vllm.testing.matrix import BASELINE, FOUR_BITS, TRIALS  # noqa: E402
from xcfg_vllm.testing.matrix_run import fits_machine, run_trial  # noqa: E402
from xcfg_vllm.testing.play import play  # noqa: E402
from xcfg_vllm.testing.text import text_batch  # noqa: E402

BASE = Path(__file__).parents[3] / "docs/examples/qwen3-tiny"


@pytest.fixture(scope="module")
def batch():
    return text_batch(BASE, (BASE / "corpus/prose.txt").read_text(encoding="utf-8")[:9000], prompt=40)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.id)
def test_each_value_does_what_the_matrix_says(trial, batch, tmp_path) -> None:
    elsewhere = fits_machine(trial)
    if elsewhere and trial.only != FOUR_BITS:
        pytest.skip(elsewhere)
    rows = run_trial(trial, BASE, tmp_path / "trial", batch)
    if folder := os.environ.get("XCFG_MATRIX_OUT"):
        (Path(folder) / f"vllm-{re.sub('[^a-z0-9]+', '-', trial.id.lower())}.json").write_text(json.dumps(rows))
    expected = [item for part in (trial.opened, *trial.steps) for item in part]
    found = {(row["knob"], str(row["value"])): row for row in rows}
    for item in expected:
        row = found[item.knob, str(item.value)]
        if elsewhere:
            assert (row["outcome"], elsewhere in row["reason"]) == ("refused", True), row
            continue
        assert row["outcome"] == item.outcome, row
        if item.outcome == "substituted":
            assert row["observed"] == item.observed
        elif item.outcome == "refused":
            assert item.reason in row["reason"]
    if trial.adapter:
        assert found["vllm.lora", "ADAPTER"]["outcome"] == "applied"


def test_an_adapter_is_the_merged_checkpoint(batch, tmp_path) -> None:
    """Against a plain float32 pass of W + alpha / rank * B A, merged by hand."""
    adapter = make_adapter(BASE, tmp_path / "adapter", size=0.1)
    played = play(tmp_path / "play", BASE, batch, {**BASELINE, "vllm.lora": str(adapter)})
    assert "error" not in played, played
    (step,) = played["steps"]
    own = np.concatenate(step["logprobs"])
    whole = np.concatenate(emulated_logprobs(merged(BASE, adapter, tmp_path / "merged"), batch))
    plain = np.concatenate(emulated_logprobs(BASE, batch))
    print(
        f"adapter: max {np.abs(own - whole).max():.3g} from the merged, {np.abs(own - plain).max():.3g} from the base"
    )
    assert np.abs(own - whole).max() < 5e-5 < 0.1 < np.abs(own - plain).max()
    assert (step["observed"]["vllm.lora"], step["observed"]["rollout.dtype"]) == (str(adapter), "float32")
    assert (played["unchanged"], played["left"]) == (True, 0)
