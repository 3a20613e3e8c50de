"""The document of a sweep: every entry judged, and what it takes to make it again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from platform import machine, python_version

from xcfg.model.json import Json
from xcfg.model.tolerance import ToleranceContract
from xcfg_kernels.drift.inputs import Inputs
from xcfg_kernels.drift.spec import DriftSpec

SCHEMA = "xcfg.kernels.drift/1"
COMPUTED_IN = "float32"
"""What both sides of a comparison compute in, whatever the dtype of the logits: the contract's row that judges."""


def code_digest() -> str:
    """SHA-256 over the sources of this distribution, by path."""
    root, found = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def document(
    spec: DriftSpec, entries: Sequence[dict[str, Json]], inputs: Sequence[Inputs], contract: ToleranceContract
) -> dict[str, Json]:
    """The sweep: each entry judged, and ``pass`` where all are. See the reference page of the command."""
    threshold = contract.max_abs_dlogp[COMPUTED_IN]
    first = {item["dtype"]: item["digest"] for item in reversed(entries)}
    judged = []
    for item in entries:
        bitwise = item["digest"] == first[item["dtype"]]
        exact = item["dlogp"]["float64"]["max_abs"]
        sound = bitwise and item["replicas_agree"] and exact <= threshold
        judged.append({"status": "pass" if sound else "fail", "bitwise_as_first": bitwise, **item})
    return {
        "schema": SCHEMA,
        "status": "pass" if all(item["status"] == "pass" for item in judged) else "fail",
        "threshold": threshold,
        "judged_on": COMPUTED_IN,
        "contract": {"id": contract.ref.id, "version": contract.ref.version, "digest": contract.ref.digest},
        "reduction": spec.record(),
        "vocab_size": spec.vocab_size,
        "rows": spec.rows,
        "seed": spec.seed,
        "topologies": judged,
        "digests": {"inputs": {item.dtype: item.digest for item in inputs}, "code": code_digest()},
        "versions": {"torch": version("torch"), "numpy": version("numpy"), "python": python_version()},
        "machine": machine(),
    }
