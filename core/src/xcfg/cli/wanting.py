"""What this machine and this environment lack for parts of xcfg, and what mends it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from xcfg.cli.tried import installed_version
from xcfg.model.json import Json

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOR = {
    "parquet": "Parquet files, in `cube export` and as recorded logprobs",
    "report": "`report --html`",
    "netcdf": "`cube export --format netcdf`",
    "s3": "results on an object store",
    "tokenizer": "the text of tokens in `compare --tokenizer`",
    "xarray": "reading the cube as an xarray dataset",
}
"""What each extra of core is for; those without an entry are for development."""
_COMPILERS = ("c++", "g++", "clang++")


def wanting(machine: Mapping[str, Json]) -> list[dict[str, str]]:
    """What is absent: ``missing`` names it, ``without`` what does not work then, ``mend`` what brings it."""
    return [*_extras(), *_machine(machine)]


def _extras() -> Iterator[dict[str, str]]:
    from packaging.requirements import Requirement

    needs: dict[str, list[str]] = {}
    for text in metadata.requires("xcfg") or ():
        requirement = Requirement(text)
        for extra in _FOR:
            if requirement.marker and requirement.marker.evaluate({"extra": extra}):
                needs.setdefault(extra, []).append(requirement.name)
    for extra, names in needs.items():
        if absent := [name for name in names if not installed_version(name)]:
            yield {"missing": ", ".join(absent), "without": _FOR[extra], "mend": f"pip install 'xcfg[{extra}]'"}


def _machine(machine: Mapping[str, Json]) -> Iterator[dict[str, str]]:
    compilers = [os.environ["CXX"]] if os.environ.get("CXX") else _COMPILERS
    if not any(map(shutil.which, compilers)):
        yield {
            "missing": "a C++ compiler",
            "without": "compiled models and kernels (training.compile: true), DeepSpeed's sums in shared memory",
            "mend": "install g++ or clang, or set CXX",
        }
    if not machine["cuda_devices"]:
        yield {
            "missing": "a CUDA device",
            "without": "execution.collective: nccl, kernels for GPUs; engines run on the CPU",
            "mend": "run where there is one",
        }
    if machine["cores"] < 2:
        yield {
            "missing": "a second core",
            "without": "ranks on cores of their own: several ranks share one and run in turn",
            "mend": "run where there are more",
        }
