"""``xcfg kernels drift`` on real ranks, against torch in float64; what it says when it cannot run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_kernels import selected_logprob_and_lse  # noqa: E402
from xcfg_kernels.drift.command import kernels  # noqa: E402

SMALL = ["--vocab", "1024", "--rows", "8", "--tp", "1,2", "--cp", "1,2", "--dtype", "bf16,fp32", "--seed", "5"]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "xcfg_kernels.drift", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def done():
    return run(*SMALL, "--json")


@pytest.fixture(scope="module")
def found(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected(dtype):
    """The logits of the seed, and ``(drift of lse, dlogp)`` of one process against torch in float64."""
    random = np.random.Generator(np.random.PCG64(5))
    targets = torch.from_numpy(random.integers(0, 1024, 8, dtype=np.int64))
    logits = torch.from_numpy(random.standard_normal((8, 1024), dtype=np.float32) * np.float32(4))
    logits = logits.to(getattr(torch, dtype))
    logprob, lse = selected_logprob_and_lse(logits, targets)
    wide = torch.log_softmax(logits.double(), dim=1).gather(1, targets[:, None])[:, 0]
    return targets, lse.double() - torch.logsumexp(logits.double(), dim=1), logprob.double() - wide


def percentile(values: list[float], share: float) -> float:
    ordered, place = sorted(values), (len(values) - 1) * share
    low, high = int(place), min(int(place) + 1, len(values) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def test_every_topology_and_dtype(found) -> None:
    places = [(item["tp"], item["cp"], item["dtype"]) for item in found["topologies"]]
    assert places == [(tp, cp, dtype) for cp in (1, 2) for tp in (1, 2) for dtype in ("bfloat16", "float32")]
    assert (found["schema"], found["status"]) == ("xcfg.kernels.drift/1", "pass")
    assert {item["status"] for item in found["topologies"]} == {"pass"}
    assert all(item["bitwise_as_first"] and item["replicas_agree"] for item in found["topologies"])
    assert len({item["digest"] for item in found["topologies"]}) == 2


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_drift_is_that_of_one_process_against_float64(found, dtype) -> None:
    targets, *drifts = expected(dtype)
    for item in found["topologies"]:
        if item["dtype"] != dtype:
            continue
        for kind, drift in zip(("lse", "dlogp"), drifts, strict=True):
            sizes, said = drift.abs().tolist(), item[kind]["float64"]
            assert said["max_abs"] == pytest.approx(max(sizes), rel=1e-6, abs=1e-13)
            assert said["p95_abs"] == pytest.approx(percentile(sizes, 0.95), rel=1e-6, abs=1e-13)
            assert said["p99_abs"] == pytest.approx(percentile(sizes, 0.99), rel=1e-6, abs=1e-13)
            for rank in item["ranks"]:
                first, end = rank["rows"]
                assert rank[kind]["float64"]["max_abs"] == pytest.approx(max(sizes[first:end]), rel=1e-6, abs=1e-13)
        row = int(drifts[1].abs().argmax())
        token, width = int(targets[row]), 1024 // item["tp"]
        owner = row // (8 // item["cp"]) * item["tp"] + token // width
        assert (item["worst"]["row"], item["worst"]["token"], item["worst"]["owner_rank"]) == (row, token, owner)
        assert item["worst"]["dlogp"] == pytest.approx(drifts[1][row].item(), rel=1e-6, abs=1e-13)


def test_what_it_takes_to_make_it_again(found) -> None:
    assert found["command"][:3] == ["xcfg", "kernels", "drift"]
    told = dict(zip(found["command"][3::2], found["command"][4::2], strict=True))
    assert (told["--tp"], told["--vocab"], told["--seed"], told["--dtype"]) == ("1,2", "1024", "5", "bf16,fp32")
    launch = found["topologies"][-1]["launch"]
    assert launch[launch.index("--nproc-per-node") + 1] == "4" and "torch.distributed.run" in launch
    assert found["reduction"]["block"] == 128 and "ascending global order" in found["reduction"]["merge"]
    assert found["reduction"]["context_parallel"] == "splits the rows, which are never merged"
    digests = [*found["digests"]["inputs"].values(), found["digests"]["code"]]
    assert [len(item) for item in digests] == [64] * 3 and len(set(digests)) == 3


def test_progress_is_on_standard_error(done) -> None:
    assert "4 of 4: tp 2, cp 2, 4 ranks" in done.stderr


def test_the_table() -> None:
    done = run("--vocab", "256", "--rows", "2", "--tp", "2", "--cp", "1", "--dtype", "fp16", "--scheme", "order_free")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("drift of the log-sum-exp") < done.stdout.index("drift of the logprob")
    for words in ("worst token against float64", "owner rank", "reduction: order_free, block None, eager", "pass: 1"):
        assert words in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tp", "3"], "151936 columns do not split into 3 equal shards"),
        (["--tp", "two"], "--tp: whole numbers between commas are needed, not 'two'"),
        (["--dtype", "int8"], "--dtype: each of float32, bfloat16, float16"),
        (["--rows", "7"], "7 rows do not split evenly over 2 context parallel ranks"),
        (["--scheme", "kahan"], "--scheme: a scheme is one of canonical_blocks, order_free, not 'kahan'"),
        (["--implementation", "cuda"], "--implementation: an implementation is one of eager, compiled, triton"),
        (["--block", "128"], "column 75968 is a shard boundary but no edge of a block of 128"),
        (["--speed"], "No such option"),
    ],
)
def test_options_that_do_not_fit(arguments, words, capsys) -> None:
    from xcfg_kernels.drift.__main__ import main

    assert main(arguments) == 2
    assert words in capsys.readouterr().err
    assert main([*arguments, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["code"]) == ("xcfg.error/1", 2)
    assert words in "".join(f"{item['where']}: {item['message']}" for item in told["errors"])


def test_a_rank_that_fails_is_named_with_its_reason() -> None:
    done = run(
        "--vocab", "256", "--rows", "2", "--tp", "1", "--cp", "1", "--implementation", "triton", TRITON_INTERPRET=""
    )
    assert done.returncode == 7
    assert "tp 1, cp 1: a rank failed" in done.stderr and "set TRITON_INTERPRET=1" in done.stderr


def test_ranks_that_take_too_long_are_ended(tmp_path) -> None:
    sizes = ["--vocab", "256", "--rows", "2", "--tp", "2", "--cp", "1"]
    done = run(*sizes, "--timeout", "0.5", "--json", TMPDIR=str(tmp_path))
    assert done.returncode == 7
    assert json.loads(done.stdout)["errors"][0]["message"] == "the ranks took more than 0.5 s"
    running = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in running if str(tmp_path) in line]
    assert not list(tmp_path.iterdir())


def test_the_group_lists_it() -> None:
    shown = CliRunner().invoke(kernels, ["--help"])
    assert shown.exit_code == 0 and "drift" in shown.output


def test_importing_the_command_imports_nothing_heavy() -> None:
    program = "import sys\nimport xcfg_kernels.drift.command\nprint('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "rich", "psutil"} & set(loaded)
