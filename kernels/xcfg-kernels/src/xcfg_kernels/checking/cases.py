"""Logits on which a backend is checked, and the right answers in float64."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from xcfg.model.kernel import KernelRequest

SCALES = {"ordinary logits": 4.0, "small logits": 1e-3, "large logits": 12.0}
"""Standard deviation of the logits of each case, in nats. The contract's limits are absolute: no float32 far below -64
could keep the one of its dtype."""
PEAK = "one dominant logit"
FAR = "logits far from zero"
AWAY = 100.0
"""How far, in nats, up and down: exp overflows float32 above 88.7 and is 0 below -103, and float32 still resolves 8e-6
there."""


def cases(request: KernelRequest, rows: int) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """(Name, logits (rows, V) of the request's dtype, targets (rows,) int64), seeded."""
    for number, (name, scale) in enumerate(SCALES.items()):
        yield name, *logits_and_targets(request, rows, scale, seed=number)
    logits, targets = logits_and_targets(request, rows, 1.0, seed=len(SCALES))
    logits[:, logits.shape[1] // 2] = 40.0
    yield PEAK, logits, targets
    logits, targets = logits_and_targets(request, rows, 1.0, seed=len(SCALES) + 1)
    logits[0::2] += AWAY
    logits[1::2] -= AWAY + 10.0
    yield FAR, logits, targets


def logits_and_targets(request: KernelRequest, rows: int, scale: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Normal logits of a standard deviation, and targets spread over the vocabulary."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, request.vocab_size, generator=random).mul_(scale)
    targets = torch.randint(0, request.vocab_size, (rows,), generator=random)
    return logits.to(getattr(torch, request.dtype)).to(request.device), targets.to(request.device)


def right_logprobs(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """``logit[target] - log(sum(exp(logits)))`` of these very logits, in float64, by its definition: (rows,)."""
    wide = logits.detach().double()
    highest = wide.amax(dim=1, keepdim=True)
    log_sum = (wide - highest).exp().sum(dim=1).log() + highest[:, 0]
    return wide.gather(1, targets[:, None])[:, 0] - log_sum


def right_gradient(logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """``weight * (onehot(target) - softmax)`` in float64: (rows, V)."""
    wide = logits.detach().double()
    exact = -torch.softmax(wide, dim=1)
    exact[torch.arange(len(targets), device=exact.device), targets] += 1.0
    return exact * weights.double()[:, None]
