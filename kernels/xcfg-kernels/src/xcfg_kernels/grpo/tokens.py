"""The loss of every token of one microbatch."""

from __future__ import annotations

import torch
from attrs import frozen

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg_kernels.grpo.policy import KlEstimator, PolicyLossSpec


@frozen(kw_only=True, eq=False)
class Microbatch:
    """The logprobs of the rows and positions this rank holds, (R, T) in nats, float32 or float64, and what they meet.

    ``mask`` (R, T) is bool: True where a token is active. What stands elsewhere is never read into a number, NaN
    included. ``advantages`` are (R,), one a sequence, or (R, T). Only ``logprobs`` may ask for a gradient.
    """

    logprobs: torch.Tensor
    mask: torch.Tensor
    advantages: torch.Tensor
    old_logprobs: torch.Tensor | None = None
    reference_logprobs: torch.Tensor | None = None


@frozen(kw_only=True, eq=False)
class TokenTerms:
    """Per token (R, T): ``loss`` with its gradient, 0 where the mask is off; ``ratio`` and ``kl`` for reports, without.

    ``ratio`` is None in the on-policy form, ``kl`` None without a penalty; where the mask is off they are 1 and 0.
    """

    loss: torch.Tensor
    ratio: torch.Tensor | None
    kl: torch.Tensor | None


def token_terms(batch: Microbatch, policy: PolicyLossSpec) -> TokenTerms:
    """The loss of each token; see :class:`PolicyLossSpec`. Raises InvalidInput, and UnsupportedError for a dtype.

    Where both arguments of the minimum are equal the gradient is that of the unclipped one, so that a ratio of exactly
    1.0 gives exactly ``-A``.
    """
    _check(batch, policy)
    advantages = batch.advantages[:, None] if batch.advantages.ndim == 1 else batch.advantages
    advantages = torch.where(batch.mask, advantages, 0.0)
    ratio = kl = None
    if policy.clip is None:
        loss = -advantages * torch.where(batch.mask, batch.logprobs, 0.0)
    else:
        assert batch.old_logprobs is not None  # _check refused it
        ratio = _difference(batch.logprobs, batch.old_logprobs, batch.mask).exp()
        free, bound = ratio * advantages, ratio.clamp(1 - policy.clip[0], 1 + policy.clip[1]) * advantages
        loss = -torch.where(bound < free, bound, free)
    if policy.kl_weight:
        assert batch.reference_logprobs is not None  # _check refused it
        kl = _kl(_difference(batch.reference_logprobs, batch.logprobs, batch.mask), policy.kl_estimator)
        loss = loss + policy.kl_weight * kl
    detached = (None if value is None else value.detach() for value in (ratio, kl))
    return TokenTerms(loss=torch.where(batch.mask, loss, 0.0), **dict(zip(("ratio", "kl"), detached, strict=True)))


def _difference(left: torch.Tensor, right: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, left - right, 0.0)


def _kl(difference: torch.Tensor, estimator: KlEstimator) -> torch.Tensor:
    """In the dtype of ``difference``; k3 goes through float64, where expm1(d) - d keeps its digits below 1e-4."""
    if estimator is KlEstimator.K1:
        return -difference
    if estimator is KlEstimator.K2:
        return difference.square() / 2
    wide = difference.double()
    return (torch.expm1(wide) - wide).to(difference.dtype)


def _check(batch: Microbatch, policy: PolicyLossSpec) -> None:
    shape, dtype = batch.logprobs.shape, batch.logprobs.dtype
    if len(shape) != 2 or batch.mask.shape != shape or batch.advantages.shape not in (shape, shape[:1]):
        shapes = f"{tuple(shape)}, {tuple(batch.mask.shape)} and {tuple(batch.advantages.shape)}"
        message = f"logprobs (R, T), mask (R, T) and advantages (R,) or (R, T) are needed, got {shapes}"
        raise InvalidInput(message, where="batch")
    if batch.mask.dtype != torch.bool:
        raise InvalidInput(f"the mask is bool, not {batch.mask.dtype}", where="mask")
    _given("old_logprobs", batch.old_logprobs, policy.clip is not None, "the clipped ratio", batch)
    _given("reference_logprobs", batch.reference_logprobs, policy.kl_weight != 0, "a kl_weight above 0", batch)
    if dtype not in (torch.float32, torch.float64):
        hint = "a step of bfloat16 at |logp| 8 to 16 is 0.0625"
        raise UnsupportedError(f"logprobs are float32 or float64, not {dtype}", where="logprobs", hint=hint)
    if batch.advantages.dtype != dtype:
        raise InvalidInput(f"advantages are {batch.advantages.dtype}, the logprobs {dtype}", where="advantages")


def _given(name: str, value: torch.Tensor | None, needed: bool, needs: str, batch: Microbatch) -> None:
    if needed != (value is not None):
        said = f"{needs} needs {name}" if needed else f"{name} are read only with {needs}"
        raise InvalidInput(said, where=name, hint="" if needed else "leave them out, or change the policy")
    if value is None:
        return
    if value.shape != batch.logprobs.shape or value.dtype != batch.logprobs.dtype:
        found, wanted = (f"{tuple(item.shape)} {item.dtype}" for item in (value, batch.logprobs))
        raise InvalidInput(f"{name} are {found}, the logprobs {wanted}", where=name)
    if value.requires_grad:
        raise InvalidInput(f"{name} ask for a gradient; they are constants", where=name, hint="call .detach() first")
