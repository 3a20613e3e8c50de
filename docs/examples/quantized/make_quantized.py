"""Makes a quantised checkpoint from the example model: python make_quantized.py SCHEME FOLDER [--base BASE]."""

from __future__ import annotations

import argparse
from pathlib import Path

from xcfg_vllm.testing.quantized import make_quantized
from xcfg_vllm.testing.schemes import SCHEMES

BASE = Path(__file__).parent.parent / "qwen3-tiny"


def main() -> None:
    """Write one checkpoint and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scheme", choices=SCHEMES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--base", type=Path, default=BASE)
    asked = parser.parse_args()
    print(make_quantized(asked.base, asked.folder, asked.scheme))


if __name__ == "__main__":
    main()
