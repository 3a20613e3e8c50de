"""What the plan really did, read from the placements of the live parameters and from the process group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_torch.compiling import decoder_layers
from xcfg_torch.head import FULL_VOCABULARY
from xcfg_torch.live import Live
from xcfg_torch.readback import SHARED
from xcfg_torch.readback_route import OWN
from xcfg_torch.readback_scored import Observed, tp_layout
from xcfg_torch.tensor_parallel import split_parameters


def tensor_parallel_size(live: Live) -> Observed:
    """Ranks over which every decoder layer's parameters are split evenly; 1 in a group of one rank with whole ones."""
    import torch.distributed as dist

    if not dist.is_initialized():
        return Unobservable("no process group")
    ranks, split = dist.get_world_size(), split_parameters(live.model)
    if not split:
        return 1 if ranks == 1 else Unobservable(f"no parameter is split over the {ranks} ranks")
    sizes = {_parts(parameter) for parameter in split.values()} - {1}
    if sizes != {ranks}:
        return Unobservable(f"parameters lie in {sorted(sizes)} parts on {ranks} ranks")
    whole = [layer for layer in decoder_layers(live.model) if not split_parameters(layer)]
    return Unobservable(f"{len(whole)} decoder layers are whole on every rank") if whole else ranks


def _parts(parameter: Any) -> int:
    """Into how many equal parts a parameter is cut: its elements over this rank's."""
    whole, own = parameter.numel(), parameter.to_local().numel()
    return whole // own if own and whole % own == 0 else 0


def sharding(live: Live) -> Observed:
    """``unsharded`` where no parameter lies on a mesh other than that of tensor parallelism."""
    split = split_parameters(live.model).values()
    names = {name for parameter in split for name in (parameter.device_mesh.mesh_dim_names or ("?",))}
    return "unsharded" if names <= {"tp"} else Unobservable(f"parameters lie on meshes of {sorted(names)}")


def collective(_live: Live) -> Observed:
    """Library of the ranks' process group."""
    import torch.distributed as dist

    return str(dist.get_backend()) if dist.is_initialized() else Unobservable("no process group")


def reduce_dtype(live: Live) -> Observed:
    """Dtype that leaves the layers cut by rows, which is what their sum over ranks was taken in; None on one rank."""
    if not split_parameters(live.model):
        return None
    return "+".join(sorted(live.seen.summed)) or Unobservable("no layer cut by rows was seen to run")


def head_layout(live: Live) -> Observed:
    """As the kernel got the logits; whole rows only of a head that is split, or that there is one rank of."""
    found = tp_layout(live)
    weight = live.model.get_output_embeddings().weight
    if found == FULL_VOCABULARY and split_parameters(live.model) and not hasattr(weight, "placements"):
        return Unobservable("the output head is whole on every rank, which the plan says it is not")
    return found


def split_facts(live: Live) -> dict[str, Json]:
    """Placements by parameter (layer numbers left out) and this rank's share of all elements."""
    import torch.distributed as dist

    split = split_parameters(live.model)
    kinds = {_kind(name): str(parameter.placements[0]) for name, parameter in split.items()}
    local = [getattr(parameter, "_local_tensor", parameter) for parameter in live.model.parameters()]
    return {
        "collective_backend": dist.get_backend(),
        "placements": kinds,
        "local_elements": sum(tensor.numel() for tensor in local),
        "elements": sum(parameter.numel() for parameter in live.model.parameters()),
    }


def _kind(name: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


READERS: Mapping[str, Callable[[Any], Observed]] = {
    **SHARED,
    **OWN,
    "training.tensor_parallel_size": tensor_parallel_size,
    "training.sharding": sharding,
    "training.reduce_dtype": reduce_dtype,
    "execution.collective": collective,
    "logp.tp_layout": head_layout,
}
"""Readers of every knob of the scorer ``torch-tp``."""
