"""The scorer ``vllm``: one process that holds the engine core and starts its own workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from xcfg.errors import InvalidInput, PluginError
from xcfg.model.experiment import SampleSource
from xcfg.model.ids import digest
from xcfg.model.json import Json
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg.model.sample import TokenBatch
from xcfg.plugin import HostedOperator, Prompt, Scored, ScoreRequest, ScorerIdentity, ScorerSpec, digest_checkpoint
from xcfg_vllm.adapters import Adapter
from xcfg_vllm.admission import admit
from xcfg_vllm.capabilities import FORCED_DECODE
from xcfg_vllm.engine import Engine, open_engine
from xcfg_vllm.environment import SAMPLE_BATCH
from xcfg_vllm.evidence import rank_info, samples_of, semantics_of
from xcfg_vllm.hosting import hosted, logprob_request
from xcfg_vllm.limits import Limits
from xcfg_vllm.live import Live
from xcfg_vllm.model_config import kv_cache_bytes, read_config
from xcfg_vllm.sampling import sample
from xcfg_vllm.sampling_values import KNOB_OF_VALUE, Sampling
from xcfg_vllm.scoring import TokenSequence, room, score
from xcfg_vllm.settings import EngineSettings

VERSIONS_RUN = ("0.28.", "0.31.", "0.32.")
"""Beginnings of the versions of vLLM that this plugin was run with; another one is recorded, not refused."""


class VllmScorer:
    """Samples the token batch, and scores fixed tokens, with a vLLM engine, offline or served, on its workers."""

    def __init__(self) -> None:
        """Nothing is built before :meth:`open`."""
        self.live: Any = None
        self._engine: Engine | None = None
        self._spec: ScorerSpec | None = None

    def open(self, spec: ScorerSpec) -> None:
        """Build the engine; engine settings are fields of :class:`EngineSettings`.

        Raises InvalidInput for a directory that is not a model's or whose tensors are not the model's, UnsupportedError
        for what vLLM refuses to run, and whatever vLLM raises, leaving no process.
        """
        self._spec = spec
        admitted = admit(spec)
        settings = engine_settings(spec, admitted.adapter)
        self._engine = engine = open_engine(settings)
        limits = Limits(vocabulary=engine.vocabulary, length=engine.cache.facts()["max_model_len"])
        self.live = Live(engine=engine, limits=limits, admitted=admitted)

    def identity(self) -> ScorerIdentity:
        """Digests of the directory vLLM loaded, and the class and versions that read it; no optimizer exists."""
        import torch
        import vllm

        assert self._spec is not None
        digests = digest_checkpoint(self._spec.checkpoint)
        recorded: dict[str, Json] = {
            "model_class": sorted({facts["model_class"] for facts in self.live.engine.worker_facts()}),
            "vllm": vllm.__version__,
            "torch": torch.__version__,
        }
        if self.live.admitted.unchecked:
            recorded["tensors_unchecked"] = self.live.admitted.unchecked
        if self.live.admitted.adapter:
            recorded["adapter"] = self.live.admitted.adapter.digest
        if not vllm.__version__.startswith(VERSIONS_RUN):
            recorded["vllm_untried"] = f"this plugin was run with {', '.join(VERSIONS_RUN)}"
        if self._spec.trust_remote_code:
            recorded["trust_remote_code"] = True
        return ScorerIdentity(
            checkpoint_digest=digests.weights, tokenizer_digest=digests.tokenizer, optimizer_steps=0, recorded=recorded
        )

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """A request for ``selected_logprob``; None for any other operator."""
        return logprob_request(self.live.engine, operator, options)

    def host(self, asked: HostedOperator) -> AbstractContextManager[Callable[[], BoundKernel | None]]:
        """The workers' samplers take the logprobs of selected tokens from a backend. Raises UnsupportedError."""
        return hosted(self.live.engine, asked)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Logprobs (nats, float32) of every response token.

        Settings: ``path``, ``batch_size``, and ``temperature``, ``top_p`` and ``top_k`` of the scored distribution.

        Raises InvalidInput for tokens the engine cannot take, UnsupportedError where the path cannot measure,
        WorkerDied within seconds of a worker's death.
        """
        live = self.live
        path = str(request.settings.get("path", FORCED_DECODE))
        live.scored, live.batch_size = None, int(request.settings.get("batch_size", 1))
        live.limits.check_batch(batch, room=room(path))
        places = [place for place, response in enumerate(batch.responses) if response]
        if not places:
            raise InvalidInput("no sequence has a response token to score", where=", ".join(batch.ids[:3]))
        live.scored = score(
            live.engine,
            [TokenSequence(prompt_ids=batch.prompts[place], response_ids=batch.responses[place]) for place in places],
            path=path,
            batch_size=live.batch_size,
            sampling=Sampling(**{name: request.settings[name] for name in KNOB_OF_VALUE if name in request.settings}),
            cache_state=request.settings.get("prefix_cache_state"),
        )
        live.workers = live.engine.worker_facts()
        rows = [np.zeros(0, dtype=np.float32)] * len(batch.ids)
        for place, logprobs in zip(places, live.scored.logprobs, strict=True):
            rows[place] = logprobs
        return Scored(samples=samples_of(batch, rows), rank=rank_info(live), semantics=semantics_of(live))

    def sample(self, prompts: Sequence[Prompt], source: SampleSource) -> TokenBatch:
        """One response a prompt, each request with a seed of its own, in batches of the side's ``batch.size``."""
        rows = [tuple(prompt.token_ids) or tuple(self.live.engine.token_ids(prompt.text)) for prompt in prompts]
        for prompt, row in zip(prompts, rows, strict=True):
            self.live.limits.check(prompt.id, row, room=source.max_new_tokens)
        drawn = sample(
            self.live.engine,
            rows,
            sampling=Sampling(temperature=source.temperature, top_p=source.top_p, top_k=source.top_k),
            max_new_tokens=source.max_new_tokens,
            seed=source.seed,
            batch_size=_sample_batch(),
            ignore_eos=source.ignore_eos,
        )
        return TokenBatch(
            ids=[prompt.id for prompt in prompts],
            prompts=rows,
            responses=[item.response_ids for item in drawn],
            action_masks=[(True,) * len(item.response_ids) for item in drawn],
            sampled_logprobs=tuple(tuple(map(float, item.logprobs)) for item in drawn),
        )

    def state_digest(self) -> str:
        """SHA-256 over the workers' digests of parameters, buffers and packed weights, rank order."""
        self.live.digests = self.live.engine.digests()
        return digest(self.live.digests)

    def close(self) -> None:
        """Shut the engine down and end every process it started."""
        engine, self.live, self._engine = self._engine, None, None
        if engine is not None:
            engine.close()


def engine_settings(spec: ScorerSpec, adapter: Adapter | None = None) -> EngineSettings:
    """The settings of the engine a specification asks for, with the size of its KV cache and room for its adapter."""
    config = read_config(spec.checkpoint)
    chosen = EngineSettings(
        model=str(spec.checkpoint),
        trust_remote_code=spec.trust_remote_code,
        kv_cache_memory_bytes=kv_cache_bytes(
            config,
            dtype=spec.engine.get("kv_cache_dtype") or spec.engine.get("dtype") or "bfloat16",
            ranks=spec.engine.get("tensor_parallel_size", 1),
            length=spec.engine.get("max_model_len"),
        ),
        lora_room=adapter.room if adapter else 0,
        **spec.engine,
    )
    return chosen


def _sample_batch() -> int:
    """The protocol's ``sample`` carries no request-time settings, so the batch size comes from the environment."""
    text = os.environ.get(SAMPLE_BATCH, "1")
    if not text.isdecimal() or int(text) < 1:
        raise PluginError(f"{SAMPLE_BATCH} is {text!r}, not a number of prompts", where="batch.size")
    return int(text)
