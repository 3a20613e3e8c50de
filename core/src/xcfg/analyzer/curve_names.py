"""Which headers of a training log mean which curve.

A header is compared in lower case, with ``-`` and blanks read as ``_`` and ``.`` as ``/``. Spellings beside the plain
ones are those that trainers log: verl's ``actor/``, ``critic/`` and ``training/`` metrics
(https://verl.readthedocs.io), TRL's GRPO and PPO trainers (https://huggingface.co/docs/trl/grpo_trainer and
ppo_trainer), OpenRLHF's ``ppo_kl`` and ``ppo_clip_ratio`` (https://github.com/OpenRLHF/OpenRLHF), SkyRL's ``policy/``
and ``trainer/`` metrics (https://github.com/NovaSky-AI/SkyRL), slime's ``train/`` and ``rollout/`` metrics
(https://github.com/THUDM/slime) and NeMo RL's ``train/`` metrics (https://github.com/NVIDIA-NeMo/RL).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

STEP = "step"
EVALUATION = "eval/"
"""Prefix of a task evaluation; ``eval.NAME`` is the same."""

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    STEP: (
        "step",
        "_step",
        "steps",
        "global_step",
        "training_step",
        "train_step",
        "iteration",
        "training/global_step",
        "train/global_step",
        "trainer/global_step",
        "train/step",
    ),
    "reward": (
        "reward",
        "rewards",
        "reward_mean",
        "mean_reward",
        "reward/mean",
        "critic/score/mean",
        "critic/rewards/mean",
        "objective/scores",
        "reward/avg_raw_reward",
        "rollout/raw_reward",
        "train/reward",
    ),
    "kl": (
        "kl",
        "ppo_kl",
        "approx_kl",
        "approxkl",
        "kl_mean",
        "mean_kl",
        "kl_divergence",
        "actor/ppo_kl",
        "actor/kl",
        "actor/kl_loss",
        "train/ppo_kl",
        "train/kl",
        "train/kl_loss",
        "train/kl_penalty",
        "policy/approxkl_avg",
        "policy/policy_kl",
        "objective/kl",
    ),
    "ratio": (
        "ratio",
        "ratio_mean",
        "mean_ratio",
        "ratio/mean",
        "importance_ratio",
        "probs_ratio",
        "actor/ratio",
        "actor/ratio_mean",
        "train/probs_ratio",
        "val/ratio",
    ),
    "entropy": (
        "entropy",
        "policy_entropy",
        "entropy_mean",
        "mean_entropy",
        "actor/entropy",
        "actor/entropy_loss",
        "train/entropy",
        "train/entropy_loss",
        "train/approx_entropy",
        "policy/entropy_avg",
        "policy/policy_entropy",
        "objective/entropy",
    ),
    "clip_fraction": (
        "clip_fraction",
        "clipfrac",
        "clip_frac",
        "clip_ratio",
        "pg_clipfrac",
        "ppo_clip_ratio",
        "actor/pg_clipfrac",
        "actor/clip_fraction",
        "actor/clipfrac",
        "train/pg_clipfrac",
        "clip_ratio/region_mean",
        "policy/clipfrac_avg",
        "policy/ppo_clip_ratio",
    ),
    "gradnorm": (
        "gradnorm",
        "grad_norm",
        "gradient_norm",
        "actor/grad_norm",
        "actor/gradnorm",
        "train/grad_norm",
        "policy/grad_norm",
        "policy/raw_grad_norm",
    ),
    "update_norm": (
        "update_norm",
        "updatenorm",
        "param_update_norm",
        "weight_update_norm",
        "actor/update_norm",
        "train/update_norm",
        "policy/update_norm",
    ),
    "collapse": ("collapse", "collapsed", "is_collapsed", "train/collapse", "actor/collapse"),
}
"""Curve to accepted headers, the preferred first: where a log has several of one curve the first listed is read."""

_PLAIN = str.maketrans({"-": "_", " ": "_", ".": "/"})


def normal(header: str) -> str:
    """The form in which headers are compared."""
    return header.strip().lower().translate(_PLAIN)


def chosen(headers: Iterable[str]) -> dict[str, str]:
    """Curve name to the header it is read from; task evaluations keep their name after ``eval/`` as it is spelled.

    Of several headers that mean one curve, the first in ``SPELLINGS``, then the first in the file.
    """
    headers = tuple(dict.fromkeys(headers))
    plain: dict[str, str] = {}
    for header in headers:
        plain.setdefault(normal(header), header)
    found = {
        curve: next(plain[spelling] for spelling in spellings if spelling in plain)
        for curve, spellings in SPELLINGS.items()
        if any(spelling in plain for spelling in spellings)
    }
    for header in headers:
        if normal(header).startswith(EVALUATION) and len(header.strip()) > len(EVALUATION):
            found.setdefault(EVALUATION + header.strip()[len(EVALUATION) :], header)
    return found
