"""vLLM's other frontend: a ``vllm serve`` process, asked over its OpenAI-compatible completions endpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any

import psutil
from attrs import frozen

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Unobservable
from xcfg_vllm.cache_watch import ToldCache
from xcfg_vllm.engine import PROBE, Engine
from xcfg_vllm.faults import EngineFault
from xcfg_vllm.forced_params import V1_HOOK, forcing_arguments
from xcfg_vllm.server import Server
from xcfg_vllm.settings import SERVER, EngineSettings
from xcfg_vllm.told_names import TOGETHER

ADAPTER = "xcfg"
"""Name by which requests ask for the adapter."""
CLAMPED = -9999.0
"""What the server writes for a logprob below it, minus infinity included: JSON has no infinities."""
FIELDS = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "ignore_eos", "logprobs", "prompt_logprobs")


class ServedEngine(Engine):
    """A running server, its scheduler told through its workers.

    The server's own defaults are off: sampling values of the checkpoint's ``generation_config.json``, which would
    count where a request names none, and scheduling ahead of the sampler, which the offline frontend has not.
    """

    def __init__(self, settings: EngineSettings) -> None:
        """Start it. Raises UnsupportedError for Model Runner V2 and for settings that vLLM finds invalid."""
        super().__init__(settings)
        if self.forcing != V1_HOOK:
            raise UnsupportedError(
                "requests over HTTP cannot force tokens under vLLM's Model Runner V2; take VLLM_USE_V2_MODEL_RUNNER=0",
                where="vllm.frontend",
            )
        arguments = {**settings.llm_arguments(), **forcing_arguments(self.forcing), "worker_extension_cls": PROBE}
        self.config = _config(arguments)
        self._names = count()
        self.model = ADAPTER if settings.lora is not None else settings.model
        self.server = Server({**arguments, **_own(settings)})
        self._install()
        self._generate_one()
        self.cache = ToldCache(lambda: self._told()["cache"])
        self.executor = "uni" if self.worker_pids == [self._told()["pid"]] else "mp"

    def frontend(self) -> str | Unobservable:
        """The server, where the scheduler is in one of its processes."""
        pid = self._told()["pid"]
        return SERVER if self.server.owns(pid) else Unobservable(f"process {pid} is not one of the server's")

    def token_ids(self, text: str) -> list[int]:
        """See :meth:`Engine.token_ids`."""
        ids: list[int] = self.server.post("/tokenize", {"model": self.settings.model, "prompt": text})["tokens"]
        return ids

    def _told(self) -> dict[str, Any]:
        told: list[dict[str, Any]] = self.rpc("xcfg_told")
        if any(answer != told[0] for answer in told):
            raise EngineFault("the workers were told different things by one scheduler")
        return told[0]

    def _call(self, method: str, arguments: Sequence[Any]) -> list[Any]:
        results: list[Any] = self.server.post("/collective_rpc", {"method": method, "args": list(arguments)})["results"]
        return results

    def _generate(self, prompts: Sequence[Sequence[int]], params: Sequence[Any]) -> list[Any]:
        batch = f"batch-{next(self._names)}"
        bodies = [
            self._body(ids, asked, [batch, len(prompts), place])
            for place, (ids, asked) in enumerate(zip(prompts, params, strict=True))
        ]
        with ThreadPoolExecutor(max_workers=len(bodies)) as threads:
            return [_answer(found) for found in threads.map(self._complete, bodies)]

    def _generate_one(self) -> None:
        """One token, so that the scheduler has told something before anything is asked of it."""
        from vllm import SamplingParams

        self.generate([[0]], [SamplingParams(max_tokens=1, temperature=0.0)])

    def _complete(self, body: dict[str, Any]) -> Any:
        return self.server.post("/v1/completions", body)

    def _body(self, ids: Sequence[int], asked: Any, together: list[str | int]) -> dict[str, Any]:
        given = {name: getattr(asked, name) for name in FIELDS if getattr(asked, name) is not None}
        extra = {**(asked.extra_args or {}), TOGETHER: together}
        return {**given, "model": self.model, "prompt": list(ids), "return_token_ids": True, "vllm_xargs": extra}

    def _empty_cache(self) -> bool:
        return bool(self.server.post("/reset_prefix_cache")["success"])

    def _shut_down(self) -> None:
        with suppress(psutil.Error):
            self.server.stop()


@frozen(kw_only=True)
class Entry:
    """Of one token."""

    logprob: float


@frozen(kw_only=True)
class Completion:
    """The tokens of one response, and of each its entry by its id."""

    token_ids: tuple[int, ...]
    logprobs: tuple[dict[int, Entry], ...] | None


@frozen(kw_only=True)
class Answer:
    """What ``vllm.RequestOutput`` has, of one response."""

    outputs: tuple[Completion]
    prompt_logprobs: tuple[dict[int, Entry] | None, ...] | None
    num_cached_tokens: int


def _answer(found: dict[str, Any]) -> Answer:
    (choice,) = found["choices"]
    ids, reported = tuple(choice["token_ids"]), choice["logprobs"]
    prompt = choice.get("prompt_logprobs")
    values = None if reported is None else reported["token_logprobs"]
    details = found["usage"].get("prompt_tokens_details") or {}
    return Answer(
        outputs=(Completion(token_ids=ids, logprobs=None if values is None else _entries(ids, values)),),
        prompt_logprobs=None if prompt is None else tuple(map(_listed, prompt)),
        num_cached_tokens=int(details.get("cached_tokens") or 0),
    )


def _entries(ids: Sequence[int], values: Sequence[float]) -> tuple[dict[int, Entry], ...]:
    return tuple({token: Entry(logprob=_unclamped(value))} for token, value in zip(ids, values, strict=True))


def _listed(entry: dict[str, Any] | None) -> dict[int, Entry] | None:
    if entry is None:
        return None
    return {int(token): Entry(logprob=_unclamped(told["logprob"])) for token, told in entry.items()}


def _unclamped(value: float) -> float:
    return -math.inf if value == CLAMPED else value


def _config(arguments: dict[str, Any]) -> Any:
    """How vLLM itself reads the settings: it refuses what is invalid before a process is started."""
    from vllm.engine.arg_utils import EngineArgs

    return EngineArgs(**arguments).create_engine_config()


def _own(settings: EngineSettings) -> dict[str, Any]:
    """Flags that only the server has."""
    chosen: dict[str, Any] = {
        "scheduler_cls": "xcfg_vllm.told_scheduler.ToldScheduler",
        "async_scheduling": False,
        "generation_config": "vllm",
        "enable_prompt_tokens_details": True,
        "disable_log_stats": True,
        "disable_uvicorn_access_log": True,
    }
    if settings.lora is not None:
        chosen["lora_modules"] = [f"{ADAPTER}={settings.lora}"]
    return chosen
