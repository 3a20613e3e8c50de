"""The sampling semantics of a rollout, as a frozen value."""

from __future__ import annotations

import hashlib
from typing import Any

from attrs import field, frozen, validators

VALUES = ("temperature", "top_p", "top_k")
"""What a request may do to the distribution by core's knobs, by the names of its fields."""

KNOB_OF_VALUE = {**{name: f"sampling.{name}" for name in VALUES}, "min_p": "vllm.min_p"}
"""Knob by name, with the one that is vLLM's own."""


@frozen(kw_only=True)
class Sampling:
    """The sampling semantics both sides must share. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 truncate nothing."""

    temperature: float = field(default=1.0, validator=validators.ge(0.0))
    top_p: float = field(default=1.0, validator=[validators.gt(0.0), validators.le(1.0)])
    top_k: int = field(default=0, validator=validators.ge(0))
    min_p: float = field(default=0.0, validator=[validators.ge(0.0), validators.le(1.0)])

    @property
    def neutral(self) -> bool:
        """Whether processed logprobs are by definition the raw ones."""
        return (self.temperature, self.top_p, self.top_k, self.min_p) == (1.0, 1.0, 0, 0.0)

    def params(self, **request: Any) -> Any:
        """The ``vllm.SamplingParams`` of one request; ``request`` holds what is not sampling semantics."""
        from vllm import SamplingParams

        return SamplingParams(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            detokenize=False,
            **request,
        )


def request_seed(seed: int, index: int) -> int:
    """A 31-bit seed for request ``index``, independent of batch size and of the other requests."""
    digest = hashlib.sha256(f"xcfg.request/1:{seed}:{index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
