"""Dtypes in force, from the policies of FSDP's parameter groups and from the tensors that passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_fsdp.groups import fsdp_modules, groups_of, param_groups, reshard
from xcfg_fsdp.live import FsdpLive
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.readback import compute_dtype as activation_dtype
from xcfg_torch.readback import output_dtype as logits_dtype
from xcfg_torch.readback_scored import Observed


def compute_dtype(live: FsdpLive) -> Observed:
    """Dtype of the activations that entered linear layers, where each group's policy that sets one says the same."""
    seen = activation_dtype(live)
    said = {dtype_name(dtype) for dtype in _of_groups(live, lambda group: group.mp_policy.param_dtype) - {None}}
    if said <= {seen}:
        return seen
    return Unobservable(f"the layers' policies say {' and '.join(sorted(said))}, the activations were {seen}")


def reduce_dtype(live: FsdpLive) -> Observed:
    """The policy's reduce dtype, by default that of its parameters; None where nothing is wrapped, hence reduced."""
    values = _of_groups(live, lambda group: group.mp_policy.reduce_dtype or group.mp_policy.param_dtype)
    if len(values) > 1:
        return Unobservable(f"the layers' policies differ: {sorted(map(str, values))}")
    value = values.pop() if values else None
    return None if value is None else dtype_name(value)


def output_dtype(live: FsdpLive) -> Observed:
    """Dtype of the logits the model handed on, where the root's policy says the same and no layer's policy sets one."""
    seen = logits_dtype(live)
    for module in fsdp_modules(live.model):
        wanted = module._get_fsdp_state()._mp_policy.output_dtype
        if wanted is not None and (module is not live.model or dtype_name(wanted) != seen):
            whose = "the root's" if module is live.model else "a layer's"
            return Unobservable(f"{whose} policy says {dtype_name(wanted)}, the logits were {seen}")
    return seen


def master_dtype(live: FsdpLive) -> Observed:
    """Dtype of the shards this rank keeps."""
    reshard(live.model)
    return "+".join(sorted({dtype_name(parameter.dtype) for parameter in live.model.parameters()}))


def policies(model: Any) -> list[Json]:
    """Each different policy of a parameter group, with the number of groups that have it."""
    found: dict[Any, int] = {}
    for module in fsdp_modules(model):
        for group in groups_of(module):
            found[group.mp_policy] = found.get(group.mp_policy, 0) + 1
    return [
        {
            **{
                name: None if getattr(policy, name) is None else dtype_name(getattr(policy, name))
                for name in ("param_dtype", "reduce_dtype", "output_dtype")
            },
            "cast_forward_inputs": policy.cast_forward_inputs,
            "groups": count,
        }
        for policy, count in found.items()
    ]


def _of_groups(live: FsdpLive, read: Callable[[Any], Any]) -> set[Any]:
    return {read(group) for group in param_groups(live.model)}
