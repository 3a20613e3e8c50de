"""Options of the executor ``ray``, read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from xcfg.errors import InvalidInput

INSTALL = 'pip install "xcfg-ray[engine]"'
STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
OPTIONS = {
    "address": "Ray's address (default: RAY_ADDRESS, else a cluster of this machine that ends with the run)",
    "cpus_per_rank": "CPUs that a rank is given (default 1)",
    "gpus_per_rank": "GPUs that a rank is given (default 0)",
    "gpus_per_engine": "GPUs of an engine in one process, such as vLLM with all its workers (default: gpus_per_rank)",
    "memory_per_rank": "GiB that a rank is given (default: not counted)",
    "strategy": f"how the ranks of a launch are placed: {', '.join(STRATEGIES)} (default PACK)",
    "wait": "seconds to wait for a cluster that is too small for a launch to grow (default 60)",
}
_GIB = 1 << 30


@frozen(kw_only=True)
class RayOptions:
    """``memory`` is in bytes, 0 where it is not counted; ``gpus_per_engine`` goes to launches of a single process."""

    address: str = ""
    cpus_per_rank: float = 1.0
    gpus_per_rank: float = 0.0
    gpus_per_engine: float = 0.0
    memory: int = 0
    strategy: str = "PACK"
    wait: float = 60.0


def read_options(given: Mapping[str, str]) -> RayOptions:
    """The options of their texts. Raises InvalidInput for one that is unknown or cannot be read."""
    for name in given:
        if name not in OPTIONS:
            raise InvalidInput(
                f"the executor ray has no option {name}", where="--executor-option", hint=f"it has {', '.join(OPTIONS)}"
            )
    strategy = given.get("strategy", "PACK").upper()
    if strategy not in STRATEGIES:
        raise InvalidInput(
            f"strategy {given['strategy']} is not one of {', '.join(STRATEGIES)}", where="--executor-option strategy"
        )
    gpus = _number(given, "gpus_per_rank", 0.0)
    return RayOptions(
        address=given.get("address", ""),
        cpus_per_rank=_number(given, "cpus_per_rank", 1.0),
        gpus_per_rank=gpus,
        gpus_per_engine=_number(given, "gpus_per_engine", gpus),
        memory=int(_number(given, "memory_per_rank", 0.0) * _GIB),
        strategy=strategy,
        wait=_number(given, "wait", 60.0),
    )


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(given.get(name, default))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InvalidInput(f"{name} must be a number of at least 0, not {given[name]}", where="--executor-option")
    return value
