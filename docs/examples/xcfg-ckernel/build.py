"""Builds the two artifacts and writes down what they are: ``python build.py SRC COMPILER``, before packaging."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

BUILDS = {"strict.so": [], "fast.so": ["-ffast-math"]}


def build(package: Path, compiler: str) -> None:
    """Compile ``selected.c`` once for each entry of ``BUILDS`` and write ``builds.json`` beside the libraries."""
    rows = []
    for name, flags in BUILDS.items():
        target = package / name
        command = [compiler, "-x", "c", "-O3", *flags, "-shared", "-fPIC", package / "selected.c", "-o", target, "-lm"]
        subprocess.run(command, check=True)
        rows.append(
            {
                "knobs": {"kernel.fast_math": bool(flags)},
                "artifact": f"xcfg_ckernel:{name}",
                "fingerprint": hashlib.sha256(target.read_bytes()).hexdigest(),
            }
        )
    (package / "builds.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]) / "xcfg_ckernel", sys.argv[2])
