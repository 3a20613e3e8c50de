"""Where parameters are: gathered or freed after a forward pass, on the device or offloaded to the CPU."""

from __future__ import annotations

from typing import Any

from xcfg.model.capability import Unobservable
from xcfg_fsdp.groups import groups_of, named_fsdp_modules, param_groups
from xcfg_fsdp.live import FsdpLive
from xcfg_torch.readback import device as parameter_device
from xcfg_torch.readback_scored import NOT_SCORED, Observed

ALL_BUT_ROOT = "all-but-root"
"""What FSDP does unasked: it frees the parameters of every layer and keeps those of the root."""


def watch_residence(live: FsdpLive) -> None:
    """Note after each forward pass which wrapped modules have freed what they gathered for it.

    Nothing but its own hook frees or gathers a module's parameters during a pass without gradient, so what holds at the
    end of the root's pass held right after the module's own.
    """

    def after(model: Any, _args: tuple[Any, ...], _output: Any) -> None:
        for name, module in named_fsdp_modules(model).items():
            live.freed[name] = not any(group.is_unsharded for group in groups_of(module))

    live.model.register_forward_hook(after)


def reshard_after_forward(live: FsdpLive) -> Observed:
    """Whether modules freed their parameters after a pass: all (True), none (False), or all but the root.

    None where nothing is wrapped. A module whose setting says otherwise than its state makes it unobservable.
    """
    modules = named_fsdp_modules(live.model)
    if not modules:
        return None
    if not live.freed:
        return NOT_SCORED
    told = {name: any(group.post_forward_mesh_info for group in groups_of(module)) for name, module in modules.items()}
    if told != live.freed:
        wrong = next(name or "the root" for name in told if told[name] != live.freed[name])
        return Unobservable(f"{wrong} is set to free its parameters ({told[wrong]}) and did otherwise")
    states = set(live.freed.values())
    if len(states) == 1:
        return states.pop()
    layers = {freed for name, freed in live.freed.items() if name}
    return ALL_BUT_ROOT if layers == {True} else Unobservable("some layers freed their parameters and some did not")


def cpu_offload(live: FsdpLive) -> Observed:
    """Whether FSDP keeps its shards on the CPU: by each group's policy and where the shards are.

    None where nothing is wrapped. On ranks that compute on the CPU the shards are there under either policy.
    """
    from torch.distributed.fsdp import CPUOffloadPolicy

    groups = param_groups(live.model)
    if not groups:
        return None
    offloaded = {isinstance(group.offload_policy, CPUOffloadPolicy) for group in groups}
    homes = {param.sharded_param.device.type for group in groups for param in group.fsdp_params}
    wanted = {"cpu"} if offloaded == {True} else {live.device.type}
    if len(offloaded) == 1 and homes == wanted:
        return offloaded.pop()
    return Unobservable(f"shards are on {' and '.join(sorted(homes))} under offload policies {sorted(offloaded)}")


def device(live: FsdpLive) -> Observed:
    """Device kind that each group computes on; where nothing is wrapped, that holds the parameters."""
    groups = param_groups(live.model)
    kinds = {group.device.type for group in groups}
    return "+".join(sorted(kinds)) if groups else parameter_device(live)


def activation_checkpointing(live: FsdpLive) -> Observed:
    """Whether a module would compute its activations again: by transformers' switch or a wrapper of torch's."""
    wrappers = [module for module in live.model.modules() if type(module).__name__ == "CheckpointWrapper"]
    return bool(wrappers) or any(getattr(module, "gradient_checkpointing", False) for module in live.model.modules())
