"""The live scheduler's prefix cache and limits, read in the scheduler's own process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

COUNTERS = ("lookups", "skipped", "hits", "hit_tokens")


class CacheWatch:
    """Counts prefix-cache lookups by wrapping the live KV cache manager's ``get_computed_blocks``."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.manager = scheduler.kv_cache_manager
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
            **{name: getattr(self, name) for name in COUNTERS},
        }


class ToldCache:
    """The facts of a scheduler in another process, as of its latest step; ``ask`` fetches them."""

    def __init__(self, ask: Callable[[], Mapping[str, Any]]) -> None:
        self._ask = ask
        self.reset()

    def reset(self) -> None:
        """Count from here on: the counters of that process only grow."""
        told = self._ask()
        self._before = {name: told[name] for name in COUNTERS}

    def facts(self) -> dict[str, Any]:
        """As :meth:`CacheWatch.facts`."""
        told = dict(self._ask())
        return told | {name: told[name] - self._before[name] for name in COUNTERS}
