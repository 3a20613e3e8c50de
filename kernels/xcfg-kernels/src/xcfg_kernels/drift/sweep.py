"""One sweep from inputs to document."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from xcfg.model.json import Json
from xcfg.model.tolerance import ToleranceContract
from xcfg_kernels.drift.document import document
from xcfg_kernels.drift.entry import entry
from xcfg_kernels.drift.inputs import written
from xcfg_kernels.drift.launch import LOGS, command, launched
from xcfg_kernels.drift.reference import reference
from xcfg_kernels.drift.spec import DriftSpec

REFERENCES = ("float64", "float32")


def sweep(
    spec: DriftSpec, contract: ToleranceContract, timeout: float, tell: Callable[[str], object]
) -> dict[str, Json]:
    """The document. ``tell`` hears of each topology before its ranks start. Raises EnvironmentFault."""
    with TemporaryDirectory(prefix="xcfg-drift-") as name:
        folder = Path(name)
        inputs = [written(spec, dtype, folder) for dtype in spec.dtypes]
        expected = {item.dtype: tuple(reference(item, kind) for kind in REFERENCES) for item in inputs}
        entries = []
        for number, topology in enumerate(spec.topologies, 1):
            tell(f"{number} of {len(spec.topologies)}: tp {topology.tp}, cp {topology.cp}, {topology.world} ranks")
            ranks = launched(spec, topology, folder, timeout)
            line = command(topology, folder)
            entries += [entry(spec, topology, item, expected[item.dtype], ranks, line) for item in inputs]
            shutil.rmtree(folder / LOGS, ignore_errors=True)
    return document(spec, entries, inputs, contract)
