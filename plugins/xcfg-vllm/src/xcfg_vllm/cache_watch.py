"""The live scheduler's prefix cache, which is readable because the engine core runs in this process."""

from __future__ import annotations

from typing import Any

from xcfg_vllm.faults import EngineFault


class CacheWatch:
    """Counts prefix-cache lookups by wrapping the live KV cache manager's ``get_computed_blocks``."""

    def __init__(self, llm: Any) -> None:
        core = getattr(llm.llm_engine.engine_core, "engine_core", None)
        if core is None:
            raise EngineFault("the engine core is in another process: set VLLM_ENABLE_V1_MULTIPROCESSING=0")
        self.executor = type(core.model_executor).__name__
        self.scheduler = core.scheduler
        self.manager = core.scheduler.kv_cache_manager
        self._find = self.manager.get_computed_blocks
        self.manager.get_computed_blocks = self._counted
        self.reset()

    def reset(self) -> None:
        """Start counting anew; the cache itself is left alone."""
        self.lookups = 0
        self.skipped = 0
        self.hits = 0
        self.hit_tokens = 0

    def _counted(self, request: Any) -> Any:
        found = self._find(request)
        self.lookups += 1
        self.skipped += bool(getattr(request, "skip_reading_prefix_cache", False))
        self.hits += found[1] > 0
        self.hit_tokens += found[1]
        return found

    def facts(self) -> dict[str, Any]:
        """The scheduler's own limits, the manager's own flag ``enabled``, and ``cached_blocks`` it could now serve."""
        pool = self.manager.block_pool
        held = getattr(pool, "cached_block_hash_to_block", ())
        return {
            "enabled": bool(self.manager.enable_caching),
            "pool_enabled": bool(pool.enable_caching),
            "cached_blocks": len(held),
            "blocks": pool.num_gpu_blocks,
            "block_size": self.scheduler.block_size,
            "max_model_len": self.scheduler.max_model_len,
            "max_num_seqs": self.scheduler.max_num_running_reqs,
            "max_num_batched_tokens": self.scheduler.max_num_scheduled_tokens,
            "chunked_prefill": bool(self.scheduler.scheduler_config.enable_chunked_prefill),
            "lookups": self.lookups,
            "skipped": self.skipped,
            "hits": self.hits,
            "hit_tokens": self.hit_tokens,
        }
