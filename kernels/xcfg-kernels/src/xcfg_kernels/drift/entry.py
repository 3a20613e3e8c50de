"""What the ranks of one topology came to under one dtype."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from xcfg.model.json import Json
from xcfg_kernels.drift.inputs import Inputs
from xcfg_kernels.drift.launch import Ranks
from xcfg_kernels.drift.measure import Values, against, worst
from xcfg_kernels.drift.reference import Reference
from xcfg_kernels.drift.spec import DriftSpec, Topology


def digest(*values: Values) -> str:
    """SHA-256 of the bytes."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(value).tobytes() for value in values)).hexdigest()


def entry(
    spec: DriftSpec,
    topology: Topology,
    inputs: Inputs,
    references: tuple[Reference, ...],
    ranks: Ranks,
    launch: Sequence[str],
) -> dict[str, Json]:
    """One topology under one dtype: all rows once, then every rank. ``references`` begin with float64."""
    lse, logprob = (_whole(ranks, topology, f"{inputs.dtype} {kind}") for kind in ("lse", "logprob"))
    furthest = worst(logprob, references[0].logprob, inputs.targets)
    cp_rank = int(furthest["row"]) // (spec.rows // topology.cp)
    owner = int(furthest["token"]) // (spec.vocab_size // topology.tp)
    return {
        "tp": topology.tp,
        "cp": topology.cp,
        "world": topology.world,
        "dtype": inputs.dtype,
        **against(lse, logprob, references, slice(None)),
        "worst": {**furthest, "cp_rank": cp_rank, "owner_rank": cp_rank * topology.tp + owner},
        "replicas_agree": all(_same(ranks, topology, rank, inputs.dtype) for rank in range(topology.world)),
        "digest": digest(lse, logprob),
        "ranks": [_rank(spec, topology, inputs, references, found, rank) for rank, found in enumerate(ranks)],
        "launch": list(launch),
    }


def _whole(ranks: Ranks, topology: Topology, name: str) -> Values:
    """All rows, those of each context parallel rank from its first tensor parallel one."""
    return np.concatenate([ranks[rank][name] for rank in range(0, topology.world, topology.tp)])


def _same(ranks: Ranks, topology: Topology, rank: int, dtype: str) -> bool:
    first = rank - rank % topology.tp
    names = [f"{dtype} lse", f"{dtype} logprob"]
    return digest(*(ranks[rank][name] for name in names)) == digest(*(ranks[first][name] for name in names))


def _rank(
    spec: DriftSpec,
    topology: Topology,
    inputs: Inputs,
    references: tuple[Reference, ...],
    found: Mapping[str, Values],
    rank: int,
) -> dict[str, Json]:
    tp_rank, cp_rank = topology.place(rank)
    sharding, (first, end) = spec.sharding(topology, tp_rank), topology.rows(cp_rank, spec.rows)
    lse, logprob = found[f"{inputs.dtype} lse"], found[f"{inputs.dtype} logprob"]
    held, rows = inputs.targets[first:end], slice(first, end)
    furthest = worst(logprob, references[0].logprob[rows], held, first)
    owner = cp_rank * topology.tp + int(furthest["token"]) // sharding.columns
    return {
        "rank": rank,
        "tp_rank": tp_rank,
        "cp_rank": cp_rank,
        "rows": [first, end],
        "columns": [sharding.start, sharding.start + sharding.columns],
        "targets_owned": int(((held >= sharding.start) & (held < sharding.start + sharding.columns)).sum()),
        **against(lse, logprob, references, rows),
        "worst": {**furthest, "owner_rank": owner},
        "digest": digest(lse, logprob),
    }
