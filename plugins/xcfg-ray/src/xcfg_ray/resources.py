"""What a launch asks of the cluster, and how much of it there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from xcfg.model.scorer import Launch
from xcfg.plugin.executor import Job
from xcfg_ray.options import RayOptions

Node = Mapping[str, float]
"""Resources of a node by Ray's names."""


@frozen(kw_only=True)
class Request:
    """``machines`` actors, each with ``bundle`` of Ray's resources; ``strategy`` says how they are placed."""

    machines: int
    bundle: Mapping[str, float]
    strategy: str

    def fits(self, nodes: Sequence[Node]) -> bool:
        """Whether these nodes could hold it if nothing else ran on them."""
        places = [holds(node, self.bundle) for node in nodes]
        if self.machines == 1:
            return any(places)
        if self.strategy == "STRICT_PACK":
            return max(places, default=0) >= self.machines
        if self.strategy == "STRICT_SPREAD":
            return sum(place > 0 for place in places) >= self.machines
        return sum(places) >= self.machines

    def describe(self) -> str:
        """For a message: ``2 machines with CPU 1, GPU 1``."""
        each = ", ".join(f"{name} {value:g}" for name, value in self.bundle.items() if value) or "nothing"
        return f"{self.machines} machines with {each} each" if self.machines > 1 else f"a machine with {each}"


def request_of(job: Job, options: RayOptions) -> Request:
    """An elastic launch of several ranks takes a machine a rank, any other one machine."""
    elastic = job.launch is Launch.ELASTIC
    return Request(
        machines=job.ranks if elastic else 1,
        bundle=bundle(options, options.gpus_per_rank if elastic else options.gpus_per_engine),
        strategy=options.strategy,
    )


def bundle(options: RayOptions, gpus: float) -> dict[str, float]:
    """The resources of one machine of a launch."""
    wanted = {"CPU": options.cpus_per_rank, "GPU": gpus, "memory": float(options.memory)}
    return {name: value for name, value in wanted.items() if value}


def holds(node: Node, wanted: Mapping[str, float]) -> int:
    """How many times a node has what is wanted; its CPUs, or once, where nothing is."""
    if not wanted:
        return max(1, int(node.get("CPU", 0)))
    return int(min(node.get(name, 0.0) // value for name, value in wanted.items()))
