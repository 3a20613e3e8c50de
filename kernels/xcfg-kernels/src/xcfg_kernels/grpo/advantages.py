"""Group-relative advantages: what a reward is beside those of the other answers to the same prompt."""

from __future__ import annotations

import torch
from attrs import field, frozen

from xcfg.errors import InvalidInput
from xcfg_kernels.grpo.choice import Choice
from xcfg_kernels.grpo.order import summed


class Scale(Choice):
    """By what the distance from the group's mean is divided."""

    GROUP_STD = "group_std"
    """``std + epsilon`` of the group, over n - 1: DeepSeekMath, verl's ``norm_adv_by_std_in_grpo``, TRL's ``group``."""
    NONE = "none"
    """Nothing: Dr. GRPO, https://arxiv.org/abs/2503.20783, TRL's ``scale_rewards="none"``."""


@frozen(kw_only=True)
class AdvantageSpec:
    """How rewards become advantages. ``epsilon`` is added to the deviation: 1e-6 in verl, 1e-4 in TRL."""

    scale: Scale = field(default=Scale.GROUP_STD, converter=Scale)
    epsilon: float = 1e-6

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput."""
        if not self.epsilon > 0:
            raise InvalidInput(f"epsilon is above 0, not {self.epsilon}: a group may have one reward", where="epsilon")


def group_advantages(rewards: torch.Tensor, groups: torch.Tensor, spec: AdvantageSpec) -> torch.Tensor:
    """Advantages (S,) of the dtype of ``rewards`` (S,), which are those of the whole batch in order of sequence number.

    ``groups`` (S,) int64 names the prompt of each. Computed in float64, members in ascending number, so the bits of a
    group depend on its own rewards alone; equal rewards give exactly 0. Rewards that lie on data parallel ranks are
    gathered first (:func:`xcfg_kernels.grpo.order.of_sequences`). Raises InvalidInput.
    """
    if rewards.ndim != 1 or groups.shape != rewards.shape or not rewards.is_floating_point():
        shapes = f"{tuple(rewards.shape)} {rewards.dtype} and {tuple(groups.shape)}"
        raise InvalidInput(f"floating-point rewards (S,) and groups (S,) are needed, got {shapes}", where="rewards")
    found = torch.empty_like(rewards)
    for group in groups.unique().tolist():
        members = (groups == group).nonzero()[:, 0]
        if len(members) == 1 and spec.scale is Scale.GROUP_STD:
            message = f"group {group} has one sequence, which has no deviation"
            raise InvalidInput(message, where="groups", hint="sample more answers to a prompt, or use the scale none")
        found[members] = _relative(rewards[members].double(), spec).to(rewards.dtype)
    return found


def _relative(rewards: torch.Tensor, spec: AdvantageSpec) -> torch.Tensor:
    # from the first member, so that the mean of equal rewards is that reward and not its neighbour
    shifted = rewards - rewards[0]
    centred = shifted - summed(shifted) / len(rewards)
    if spec.scale is Scale.NONE:
        return centred
    deviation = (summed(centred.square()) / (len(rewards) - 1)).sqrt()
    return centred / (deviation + spec.epsilon)
