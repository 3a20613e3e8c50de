"""What a rank is told, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcfg.model.json import Json
from xcfg_kernels.drift.spec import DriftSpec, Topology
from xcfg_kernels.reduction import ReductionSpec, Scheme

TASK = "task.json"


def result_file(rank: int) -> str:
    """The name of the file a rank writes."""
    return f"result-{rank}.npz"


def task(spec: DriftSpec, topology: Topology) -> Mapping[str, Json]:
    """The sweep's inputs and reduction, and one topology of it."""
    return {
        "tp": topology.tp,
        "cp": topology.cp,
        "dtypes": list(spec.dtypes),
        "vocab_size": spec.vocab_size,
        "rows": spec.rows,
        "scheme": str(spec.reduction.scheme),
        "block": spec.reduction.block,
        "implementation": spec.implementation,
    }


def task_of(told: Mapping[str, Any]) -> tuple[DriftSpec, Topology]:
    """What :func:`task` told."""
    topology = Topology(tp=told["tp"], cp=told["cp"])
    spec = DriftSpec(
        tp=(topology.tp,),
        cp=(topology.cp,),
        dtypes=told["dtypes"],
        vocab_size=told["vocab_size"],
        rows=told["rows"],
        reduction=ReductionSpec(scheme=Scheme(told["scheme"]), block=told["block"]),
        implementation=told["implementation"],
    )
    return spec, topology
