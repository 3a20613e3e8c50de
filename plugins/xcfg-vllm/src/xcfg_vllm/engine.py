"""One live rollout engine: built from explicit settings, watched, and always taken down to the last process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import psutil

from xcfg_vllm.adapters import adapter_request
from xcfg_vllm.cache_watch import CacheWatch
from xcfg_vllm.environment import check_environment
from xcfg_vllm.faults import EngineFault, WorkerDied, refusal_of
from xcfg_vllm.forced_params import V1_HOOK, forcing_arguments, forcing_mechanism
from xcfg_vllm.settings import EngineSettings

T = TypeVar("T")
RPC_SECONDS = 120.0


def open_engine(settings: EngineSettings) -> Engine:
    """Build the engine; on any failure no process of it is left. Takes 10 to 40 s.

    Raises UnsupportedError where vLLM finds its settings invalid, with vLLM's sentence.

    The caller is the main module of its own process (``python -m ...``, guarded by ``__name__ == "__main__"``)
    and has set ``process_environment()``.
    """
    check_environment()
    before = _children()
    try:
        return Engine(settings)
    except BaseException as error:
        _end(_children() - before)
        if refusal := refusal_of(error):
            raise refusal from error
        raise


class Engine:
    """A running ``vllm.LLM``. ``llm`` is the live object; use as a context manager or call ``close()``."""

    def __init__(self, settings: EngineSettings) -> None:
        self._before = _children()
        started = time.monotonic()
        from vllm import LLM

        self.settings = settings
        self.import_seconds = time.monotonic() - started
        self.forcing = forcing_mechanism()
        self.llm: Any = LLM(
            **settings.llm_arguments(),
            **forcing_arguments(self.forcing),
            worker_extension_cls="xcfg_vllm.worker.WorkerProbe",
            disable_log_stats=True,
        )
        self.build_seconds = time.monotonic() - started - self.import_seconds
        self.cache = CacheWatch(self.llm)
        self.executor = self.cache.executor
        self.adapter = adapter_request(settings.lora)
        if self.adapter is not None:  # loaded now: the state must be the same before and after the first request
            self.guard(lambda: self.llm.llm_engine.add_lora(self.adapter))
        self.vocabulary: int = self.llm.llm_engine.model_config.get_vocab_size()
        self.hooks = self.rpc("xcfg_install", self.forcing == V1_HOOK)
        self.worker_pids = [facts["parallel"]["pid"] for facts in self.worker_facts()]

    def rpc(self, method: str, *arguments: Any) -> list[Any]:
        """One answer per worker, rank order."""
        return self.guard(lambda: self.llm.collective_rpc(method, timeout=RPC_SECONDS, args=arguments))

    def worker_facts(self) -> list[dict[str, Any]]:
        """What each worker holds now (``WorkerProbe.xcfg_facts``), rank order."""
        return self.rpc("xcfg_facts")

    def digests(self) -> list[dict[str, Any]]:
        """Per worker; equal before and after scoring, or scoring was not read-only."""
        return self.rpc("xcfg_digest")

    def meters(self, *, reset: bool = False) -> list[dict[str, Any]]:
        """What each worker has seen since the last reset (``Meter.facts``), rank order."""
        return self.rpc("xcfg_meter", reset)

    def generate(self, prompts: Sequence[Sequence[int]], params: Sequence[Any]) -> list[Any]:
        """Submit all prompts (token ids) together and wait. Raises WorkerDied, never hangs on a dead worker."""
        inputs = [{"prompt_token_ids": list(ids)} for ids in prompts]
        return self.guard(lambda: self.llm.generate(inputs, list(params), use_tqdm=False, lora_request=self.adapter))

    def reset_cache(self) -> None:
        """Drop every cached prefix; raises EngineFault when the engine refuses, because blocks are still in use."""
        if not self.guard(self.llm.reset_prefix_cache):
            raise EngineFault("the prefix cache could not be reset: requests are still holding blocks")
        left = self.cache.facts()["cached_blocks"]
        if left:
            raise EngineFault(f"{left} blocks are still cached after a prefix-cache reset")

    def guard(self, call: Callable[[], T]) -> T:
        """Run ``call``; a failure while a worker is dead is reported as WorkerDied, with the process's id."""
        try:
            return call()
        except Exception as error:
            dead = self.dead_workers()
            if dead:
                raise WorkerDied(f"worker process {dead} ended during the call: {error}") from error
            raise

    def dead_workers(self, grace: float = 2.0) -> list[int]:
        """Ids of workers that ended, waiting ``grace`` seconds for a death that is only now being noticed."""
        deadline = time.monotonic() + grace
        while True:
            dead = [pid for pid in getattr(self, "worker_pids", []) if not _alive(pid)]
            if dead or time.monotonic() > deadline:
                return dead
            time.sleep(0.05)

    def close(self) -> None:
        """Shut vLLM down, then end every process it started. Safe to call twice and after a worker's death."""
        with suppress(Exception):
            self.llm.llm_engine.engine_core.shutdown()
        _end(_children() - self._before)

    def __enter__(self) -> Self:
        """Give the engine itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close, whatever happened."""
        self.close()


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _end(processes: set[psutil.Process], grace: float = 5.0) -> None:
    ours = {process for process in processes if not _is_resource_tracker(process)}
    for process in ours:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(ours, timeout=grace)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=grace)


def _is_resource_tracker(process: psutil.Process) -> bool:
    """Python's own helper: it ends with this process and must outlive the workers to free their shared memory."""
    with suppress(psutil.Error):
        return any("resource_tracker" in word for word in process.cmdline())
    return False
