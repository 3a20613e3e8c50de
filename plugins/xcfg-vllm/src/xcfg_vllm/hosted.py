"""A kernel backend in place of the logprobs that a worker's sampler computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from xcfg.model.capability import Unsupported
from xcfg.model.codec import structure, unstructure
from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.plugin.target import resolve
from xcfg_vllm.faults import EngineFault

if TYPE_CHECKING:
    import torch


class Hosted:
    """Around ``Sampler.compute_logprobs`` and ``gather_logprobs`` of Model Runner V1, until :meth:`undo`.

    The sampler still normalises every column, for its ranks and its top logprobs; only the logprob of the selected
    token, column 0 of what it gathers, is the backend's, from a copy of the same logits. Decoding and prompt logprobs
    both go this way.
    """

    def __init__(self, sampler: Any) -> None:
        self.refusal = ""
        self.calls = 0
        self._sampler = sampler
        self._stack = ExitStack()
        self._logits: torch.Tensor | None = None

    def bind(self, target: str, request: Mapping[str, Json]) -> None:
        """Bind the backend at ``target``, or say in ``refusal`` why it does not serve the request."""
        self._backend = resolve(target)()
        self._request = structure(request, KernelRequest)
        found = self._backend.probe(self._request)
        if isinstance(found, Unsupported):
            self.refusal = found.reason
            return
        self._operator = self._stack.enter_context(self._backend.bind(self._request))
        for name, around in (("compute_logprobs", self._computed), ("gather_logprobs", self._gathered)):
            setattr(self._sampler, name, around(getattr(self._sampler, name)))
            self._stack.callback(delattr, self._sampler, name)

    def undo(self) -> None:
        """Give the sampler its own methods back."""
        self._stack.close()

    def told(self) -> dict[str, Any] | None:
        """What was called since, as plain data; None where nothing was."""
        return unstructure(self._backend.identify(self._operator)) if self.calls else None

    def _computed(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        def computed(logits: torch.Tensor) -> Any:
            self._logits = logits.clone()  # temperature and cuts change the sampler's in place
            return compute(logits)

        return computed

    def _gathered(self, gather: Callable[..., Any]) -> Callable[..., Any]:
        def gathered(logprobs: torch.Tensor, num_logprobs: int, token_ids: torch.Tensor) -> Any:
            logits, self._logits = self._logits, None
            if logits is None or logits.shape != logprobs.shape:
                raise EngineFault("the sampler gathered logprobs that were not computed from the logits just seen")
            if str(logits.dtype) != f"torch.{self._request.dtype}":
                raise EngineFault(f"the backend was bound for {self._request.dtype} logits, these are {logits.dtype}")
            found = gather(logprobs, num_logprobs, token_ids)
            found.logprobs[:, 0] = self._operator(logits, token_ids)
            self.calls += 1
            return found

        return gathered
