"""One live rollout engine: built from explicit settings, watched, and always taken down to the last process."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from xcfg.model.capability import Unobservable
from xcfg_vllm.environment import check_environment
from xcfg_vllm.faults import EngineFault, WorkerDied, refusal_of
from xcfg_vllm.forced_params import V1_HOOK, forcing_mechanism
from xcfg_vllm.processes import alive, children, end
from xcfg_vllm.settings import SERVER, EngineSettings

T = TypeVar("T")
PROBE = "xcfg_vllm.worker.WorkerProbe"


class Cache(Protocol):
    """What the live scheduler says of its prefix cache and its limits (:class:`xcfg_vllm.cache_watch.CacheWatch`)."""

    def reset(self) -> None:
        """Start counting anew; the cache itself is left alone."""

    def facts(self) -> dict[str, Any]:
        """Limits, flags and counters, as plain data."""


def open_engine(settings: EngineSettings) -> Engine:
    """Build the engine that ``settings.frontend`` names; on any failure no process of it is left. Takes 10 to 40 s.

    Raises UnsupportedError where vLLM finds its settings invalid, with vLLM's sentence.

    The caller is the main module of its own process (``python -m ...``, guarded by ``__name__ == "__main__"``)
    and has set ``process_environment()``.
    """
    check_environment()
    before = children()
    try:
        if settings.frontend == SERVER:
            from xcfg_vllm.served import ServedEngine

            return ServedEngine(settings)
        from xcfg_vllm.offline import OfflineEngine

        return OfflineEngine(settings)
    except BaseException as error:
        end(children() - before)
        if refusal := refusal_of(error):
            raise refusal from error
        raise


class Engine(ABC):
    """A running engine behind one of vLLM's two frontends; use as a context manager or call ``close()``.

    ``config`` is vLLM's own (``VllmConfig``), ``executor`` what runs the workers, ``hooks`` what was hooked in each.
    """

    config: Any
    cache: Cache
    executor: str

    def __init__(self, settings: EngineSettings) -> None:
        self._before = children()
        self.settings = settings
        self.forcing = forcing_mechanism()
        self.worker_pids: list[int] = []

    def _install(self) -> None:
        """Hook the workers, once they are there."""
        self.hooks = self.rpc("xcfg_install", self.forcing == V1_HOOK)
        self.worker_pids = [facts["parallel"]["pid"] for facts in self.worker_facts()]

    @property
    def vocabulary(self) -> int:
        """Tokens the model has logits for."""
        return int(self.config.model_config.get_vocab_size())

    @abstractmethod
    def frontend(self) -> str | Unobservable:
        """Which frontend the live scheduler is behind, as its process tells."""

    @abstractmethod
    def token_ids(self, text: str) -> list[int]:
        """The engine's own tokenizer, special tokens as it adds them by default."""

    @abstractmethod
    def _call(self, method: str, arguments: Sequence[Any]) -> list[Any]: ...

    @abstractmethod
    def _generate(self, prompts: Sequence[Sequence[int]], params: Sequence[Any]) -> list[Any]: ...

    @abstractmethod
    def _empty_cache(self) -> bool: ...

    @abstractmethod
    def _shut_down(self) -> None: ...

    def rpc(self, method: str, *arguments: Any) -> list[Any]:
        """One answer per worker, rank order."""
        return self.guard(lambda: self._call(method, arguments))

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
        """Submit all prompts (token ids) together and wait. Raises WorkerDied, never hangs on a dead worker.

        The answers have ``outputs[0].token_ids``, ``outputs[0].logprobs``, ``prompt_logprobs`` and
        ``num_cached_tokens`` as ``vllm.RequestOutput`` has them.
        """
        return self.guard(lambda: self._generate(prompts, params))

    def reset_cache(self) -> None:
        """Drop every cached prefix; raises EngineFault when the engine refuses, because blocks are still in use."""
        if not self.guard(self._empty_cache):
            raise EngineFault("the prefix cache could not be reset: requests are still holding blocks")

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
            dead = [pid for pid in self.worker_pids if not alive(pid)]
            if dead or time.monotonic() > deadline:
                return dead
            time.sleep(0.05)

    def close(self) -> None:
        """Shut vLLM down, then end every process it started. Safe to call twice and after a worker's death."""
        self._shut_down()
        end(children() - self._before)

    def __enter__(self) -> Self:
        """Give the engine itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close, whatever happened."""
        self.close()
