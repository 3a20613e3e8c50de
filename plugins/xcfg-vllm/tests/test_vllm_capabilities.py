"""Reasons known before an engine is built."""

from __future__ import annotations

import pytest

from xcfg_vllm import capabilities
from xcfg_vllm.capabilities import cpu_kv_cache_reason, path_reason
from xcfg_vllm.sampling_values import Sampling, request_seed


def _path(path="prefill", mode="raw_logprobs", sampling=None, cache=False):
    return path_reason(path=path, logprobs_mode=mode, sampling=sampling or Sampling(), prefix_cache=cache)


def test_paths() -> None:
    assert _path() is None
    assert _path(path="forced_decode", mode="processed_logprobs", sampling=Sampling(top_k=5), cache=True) is None
    assert "prompt logprobs skip" in _path(mode="processed_logprobs", sampling=Sampling(top_p=0.9))
    assert "prefix cache" in _path(cache=True)
    assert "unknown scoring path" in _path(path="guess")


@pytest.mark.parametrize(
    ("dtype", "machine", "flags", "cpu", "refused"),
    [
        ("fp8_e4m3", "x86_64", {"avx2"}, True, True),
        ("fp8_e4m3", "x86_64", {"avx2", "avx512f"}, True, False),
        ("fp8_e5m2", "x86_64", {"amx_tile"}, True, False),
        ("fp8_e4m3", "x86_64", {"avx2"}, False, False),
        ("fp8_e4m3", "aarch64", set(), True, False),
        ("bfloat16", "x86_64", {"avx2"}, True, False),
    ],
)
def test_fp8_kv_cache_on_a_cpu(dtype, machine, flags, cpu, refused, monkeypatch) -> None:
    monkeypatch.setattr(capabilities.platform, "machine", lambda: machine)
    reason = cpu_kv_cache_reason(dtype, frozenset(flags), cpu_engine=cpu)
    assert (reason is not None) == refused
    assert reason is None or "AVX-512 or AMX" in reason


def test_sampling_semantics() -> None:
    assert Sampling().neutral
    assert not Sampling(temperature=0.7).neutral
    for wrong in ({"temperature": -0.1}, {"top_p": 0.0}, {"top_k": -1}):
        with pytest.raises(ValueError):
            Sampling(**wrong)


def test_request_seeds_are_their_own() -> None:
    seeds = {request_seed(seed, index) for seed in (0, 1) for index in range(100)}
    assert len(seeds) == 200
    assert all(0 <= seed < 2**31 for seed in seeds)
