"""Longer checks on real engines: probe and build agree, and a compiled engine is told from an eager one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xcfg_vllm.capabilities import cpu_kv_cache_reason
from xcfg_vllm.environment import process_environment

pytestmark = [pytest.mark.engine, pytest.mark.full]
pytest.importorskip("vllm", reason="vllm is not installed")

PROGRAM = """
import json, sys
from pathlib import Path

from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec, ScoreRequest
from xcfg.testing.batches import toy_batch
from xcfg_vllm.readback import READERS
from xcfg_vllm.scorer import VllmScorer

if __name__ == "__main__":
    scorer = VllmScorer()
    scorer.open(
        ScorerSpec(
            role=Role.ROLLOUT,
            checkpoint=Path(sys.argv[1]),
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine=json.loads(sys.argv[2]),
        )
    )
    before = scorer.state_digest()
    scored = scorer.score(toy_batch(256), ScoreRequest(settings={"batch_size": 2}))
    found = {knob: str(read(scorer.live)) for knob, read in READERS.items()}
    found["unchanged"] = scorer.state_digest() == before
    scorer.close()
    print("FOUND " + json.dumps(found))
"""


def _run(folder: Path, checkpoint: Path, engine: str) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, str(program), str(checkpoint), engine],
        env={**os.environ, **process_environment(ranks=1, threads=1), "VLLM_CACHE_ROOT": str(folder / "cache")},
        capture_output=True,
        text=True,
    )


def test_a_build_refuses_what_the_probe_refuses(checkpoint, tmp_path) -> None:
    if cpu_kv_cache_reason("fp8_e4m3") is None:
        pytest.skip("this machine has an fp8 KV cache")
    done = _run(tmp_path, checkpoint, '{"dtype": "bfloat16", "enforce_eager": true, "kv_cache_dtype": "float8_e4m3fn"}')
    assert done.returncode != 0
    assert "AVX-512 or AMX" in done.stderr


def test_a_compiled_engine_is_observed_as_such(checkpoint, tmp_path) -> None:
    done = _run(
        tmp_path, checkpoint, '{"dtype": "bfloat16", "enforce_eager": false, "compile_mode": "DYNAMO_TRACE_ONCE"}'
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert '"rollout.enforce_eager": "False"' in line
    assert '"execution.compile_mode": "DYNAMO_TRACE_ONCE"' in line
    assert '"rollout.dtype": "bfloat16"' in line
    assert '"unchanged": true' in line
