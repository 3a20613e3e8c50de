"""Opens the content of a result cube, filters and selects, and prints seconds, peak memory and rows as JSON.

``python cube_read.py KIND PLACE``: KIND is ``cube``, ``parquet`` or ``xarray``, with ``+`` where the filter asks for an
observed value as well. The seconds are those of opening, filtering and selecting; the memory is that of the process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

AXES = ("rollout.dtype", "training.compute_dtype", "parallel.tensor", "batch.micro_size", "sampling.temperature")
SELECT = ("case_id", *AXES, "max_abs_dlogp", "mean_abs_dlogp", "threshold")
KNOB, VALUE, BOUND, FAIL = "batch.micro_size", 64, 0.9, 2


def cube(place: Path, *, observed: bool) -> Callable[[], int]:
    """By the query language."""
    from xcfg.cube.query import query

    more = f" and observed.training.{KNOB} == {VALUE}" if observed else ""
    return lambda: len(query(place, f"status == fail and max_abs_dlogp > {BOUND}{more}", SELECT))


def parquet(place: Path, *, observed: bool) -> Callable[[], int]:
    """By pyarrow, which reads the columns of the filter and of the selection alone."""
    from pyarrow import parquet as files

    asked = [("status", "==", "fail"), ("max_abs_dlogp", ">", BOUND)]
    asked += [(f"observed.training.{KNOB}", "==", str(VALUE))] if observed else []
    return lambda: len(files.read_table(place, columns=list(SELECT), filters=asked).to_pylist())


def xarray(place: Path, *, observed: bool) -> Callable[[], int]:
    """By xarray and numpy, over the dense array of cells."""
    import numpy
    import xarray
    import zarr  # noqa: F401  # imported by the opening otherwise

    def read() -> int:
        found = xarray.open_zarr(place, consolidated=False, chunks=None)
        metrics = found["metrics"].load()
        largest, mean = (metrics.sel(metric=name).values for name in ("max_abs_dlogp", "mean_abs_dlogp"))
        met = (found["status"].values == FAIL) & (largest > BOUND)
        if observed:
            met &= found["observed"].sel(side="training", axis=KNOB).values == str(VALUE)
        cells = numpy.nonzero(met)
        columns = [found["case_id"].values[cells], largest[cells], mean[cells], found["threshold"].values[cells]]
        columns += [found[axis].values[at] for axis, at in zip(found["status"].dims, cells, strict=True)]
        return len(list(zip(*(column.tolist() for column in columns), strict=True)))

    return read


def main(kind: str, place: Path) -> None:
    """Prints one document."""
    kinds = {"cube": cube, "parquet": parquet, "xarray": xarray}
    read = kinds[kind.removesuffix("+")](place, observed=kind.endswith("+"))
    began = time.perf_counter()
    rows = read()
    seconds = time.perf_counter() - began
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"rows": rows, "seconds": seconds, "peak_mb": int(peak.split()[1]) * 1024 / 1e6}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
