"""RMS norms computed by one function of torch, or spelt out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcfg.errors import UnsupportedError

WHERE = "torch.norm_kernel"
FUSED = "fused"
UNFUSED = "unfused"
NORM_KERNELS = (FUSED, UNFUSED)

_CLOSE = 2**-16  # relative; two orders of the same float32 operations


def compute_norms_by(model: Any, kernel: str) -> None:
    """Replace the forward of every RMS norm of this model, and of no other, by the function called ``kernel``.

    ``fused`` multiplies by the weight before the one rounding to the activations' dtype, ``unfused`` after it, as Llama
    and its kin spell it out. Raises UnsupportedError for a model without RMS norms, or with one that computes something
    else, as Gemma's does, which adds 1 to its weight.
    """
    norms = rms_norms(model)
    if not norms:
        raise UnsupportedError(f"{type(model).__name__} has no RMS norm", where=WHERE)
    for norm in norms:
        forward = _forward(norm, kernel)
        _check_same(norm, forward)
        norm.forward = forward


def rms_norms(model: Any) -> list[Any]:
    """Modules whose class is called an RMS norm."""
    return [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]


def _forward(norm: Any, kernel: str) -> Callable[[Any], Any]:
    import torch

    epsilon = getattr(norm, "variance_epsilon", getattr(norm, "eps", None))
    if epsilon is None or getattr(norm, "weight", None) is None:
        raise UnsupportedError(f"{type(norm).__name__} has no weight, or does not name its epsilon", where=WHERE)

    def fused(hidden: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(hidden, tuple(norm.weight.shape), norm.weight, epsilon)

    def unfused(hidden: torch.Tensor) -> torch.Tensor:
        wide = hidden.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
        return norm.weight * wide.to(hidden.dtype)

    return fused if kernel == FUSED else unfused


def _check_same(norm: Any, forward: Callable[[Any], Any]) -> None:
    """The replacement gives, to the rounding of its dtype, what the module gives."""
    import torch

    seeded = torch.Generator().manual_seed(0)
    weight = norm.weight
    hidden = torch.randn((4, *weight.shape), generator=seeded).to(device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        own, new = norm(hidden).float(), forward(hidden).float()
    step = 4 * torch.finfo(weight.dtype).eps
    if not torch.allclose(own, new, rtol=max(step, _CLOSE), atol=max(step, _CLOSE)):
        raise UnsupportedError(f"{type(norm).__name__} computes something else than weight times RMS norm", where=WHERE)
