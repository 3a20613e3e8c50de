"""vLLM's offline frontend: ``vllm.LLM``, with the engine core in this process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from xcfg_vllm.adapters import adapter_request
from xcfg_vllm.cache_watch import CacheWatch
from xcfg_vllm.engine import PROBE, Engine
from xcfg_vllm.faults import EngineFault
from xcfg_vllm.forced_params import forcing_arguments
from xcfg_vllm.settings import OFFLINE, EngineSettings

RPC_SECONDS = 120.0


class OfflineEngine(Engine):
    """A running ``vllm.LLM``; ``llm`` is the live object."""

    def __init__(self, settings: EngineSettings) -> None:
        """Build it. Raises whatever vLLM raises."""
        super().__init__(settings)
        from vllm import LLM

        self.llm: Any = LLM(
            **settings.llm_arguments(),
            **forcing_arguments(self.forcing),
            worker_extension_cls=PROBE,
            disable_log_stats=True,
        )
        self.config = self.llm.llm_engine.vllm_config
        core = getattr(self.llm.llm_engine.engine_core, "engine_core", None)
        if core is None:
            raise EngineFault("the engine core is in another process: set VLLM_ENABLE_V1_MULTIPROCESSING=0")
        self.executor = type(core.model_executor).__name__
        self.cache: CacheWatch = CacheWatch(core.scheduler)
        self.adapter = adapter_request(settings.lora)
        if self.adapter is not None:  # loaded now: the state must be the same before and after the first request
            self.guard(lambda: self.llm.llm_engine.add_lora(self.adapter))
        self._install()

    def frontend(self) -> str:
        """Offline: the scheduler is an object of this process, or the engine would not have been built."""
        return OFFLINE

    def token_ids(self, text: str) -> list[int]:
        """See :meth:`Engine.token_ids`."""
        ids: list[int] = self.llm.get_tokenizer().encode(text)
        return ids

    def _call(self, method: str, arguments: Sequence[Any]) -> list[Any]:
        answers: list[Any] = self.llm.collective_rpc(method, timeout=RPC_SECONDS, args=tuple(arguments))
        return answers

    def _generate(self, prompts: Sequence[Sequence[int]], params: Sequence[Any]) -> list[Any]:
        inputs = [{"prompt_token_ids": list(ids)} for ids in prompts]
        answers: list[Any] = self.llm.generate(inputs, list(params), use_tqdm=False, lora_request=self.adapter)
        return answers

    def _empty_cache(self) -> bool:
        emptied = bool(self.llm.reset_prefix_cache())
        left = self.cache.facts()["cached_blocks"]
        if emptied and left:
            raise EngineFault(f"{left} blocks are still cached after a prefix-cache reset")
        return emptied

    def _shut_down(self) -> None:
        with suppress(Exception):
            self.llm.llm_engine.engine_core.shutdown()
