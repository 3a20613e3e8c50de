"""Batches for the GRPO loss, and what float64 loops in numpy make of them. Loaded with ``runpy``."""

from __future__ import annotations

import numpy as np
import torch

from xcfg_kernels.grpo import Microbatch

SEQUENCES, WIDTH, VOCAB = 8, 12, 64
LENGTHS = (12, 5, 9, 1, 12, 7, 3, 10)


def tensors(seed: int, sequences: int = SEQUENCES, width: int = WIDTH):
    """``logits`` (S, T, V) float32, ``targets``, ``mask``, ``old`` and ``reference`` (S, T), ``advantages`` (S,)."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(sequences, width, VOCAB, generator=random) * 3
    targets = torch.randint(0, VOCAB, (sequences, width), generator=random)
    mask = torch.arange(width)[None] < torch.tensor(LENGTHS * sequences)[:sequences, None]
    mask[0, 4] = False  # a hole, as a tool's output in the middle of an answer leaves
    exact = torch.log_softmax(logits.double(), dim=-1).gather(2, targets[..., None])[..., 0].float()
    old, reference = (exact + torch.randn(sequences, width, generator=random) * 0.25 for _ in range(2))
    advantages = torch.randn(sequences, generator=random)
    found = {"logits": logits, "targets": targets, "mask": mask, "advantages": advantages}
    return {**found, "old": old, "reference": reference}


def microbatch(found, logprobs, rows, columns, *, clip: bool = True, kl: bool = True) -> Microbatch:
    """The rows and columns of ``found`` beside ``logprobs``, with NaN where no token is active."""
    mask = found["mask"][rows][:, columns]
    pick = lambda name: torch.where(mask, found[name][rows][:, columns], torch.nan)  # noqa: E731
    return Microbatch(
        logprobs=logprobs,
        mask=mask,
        advantages=found["advantages"][rows],
        old_logprobs=pick("old") if clip else None,
        reference_logprobs=pick("reference") if kl else None,
    )


def oracle(found, normaliser: str, *, clip=(0.2, 0.2), kl_weight=0.0, kl="k3", groups=None, constant=None):
    """Loss and numbers of the sequences in float64, token by token as the papers write it."""
    wide = found["logits"].double().numpy()
    top = wide.max(-1)
    lse = top + np.log(np.exp(wide - top[..., None]).sum(-1))
    total, count = np.zeros(len(wide)), found["mask"].sum(1).numpy()
    for s, t in np.argwhere(found["mask"].numpy()):
        logp = wide[s, t, found["targets"][s, t]] - lse[s, t]
        advantage = float(found["advantages"][s])
        if clip is None:
            value = -advantage * logp
        else:
            ratio = np.exp(logp - float(found["old"][s, t]))
            value = -min(ratio * advantage, min(max(ratio, 1 - clip[0]), 1 + clip[1]) * advantage)
        if kl_weight:
            d = float(found["reference"][s, t]) - logp
            value += kl_weight * {"k1": -d, "k2": d * d / 2, "k3": np.exp(d) - 1 - d}[kl]
        total[s] += value
    means = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    losses = []
    for rows in groups or [list(range(len(total)))]:
        rows = list(rows)
        losses.append(
            {
                "token_mean": lambda rows=rows: total[rows].sum() / count[rows].sum(),
                "seq_mean": lambda rows=rows: means[rows].sum() / len(rows),
                "seq_sum_token_mean": lambda rows=rows: means[rows].sum(),
                "constant": lambda rows=rows: total[rows].sum() / constant,
            }[normaliser]()
        )
    return np.mean(losses), means if normaliser.startswith("seq") else total


def bits(values: torch.Tensor) -> torch.Tensor:
    """The same memory as integers."""
    return values.detach().contiguous().view({4: torch.int32, 8: torch.int64}[values.element_size()])
