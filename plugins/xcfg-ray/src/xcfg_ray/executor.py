"""The executor ``ray``."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from xcfg.errors import EnvironmentFault
from xcfg.plugin.executor import Ended, Job
from xcfg.plugin.stdout import stdout_to_stderr
from xcfg_ray.options import INSTALL, RayOptions, read_options
from xcfg_ray.resources import bundle, holds, request_of

LOCAL_STORE = 256 << 20
"""Bytes of the object store of a cluster of this machine: files pass through it in pieces."""


class RayExecutor:
    """Runs each launch on the cluster that the options name."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Connect. Raises InvalidInput for a wrong option, EnvironmentFault without ray or without the cluster."""
        self._options = read_options(options)
        try:
            import ray  # noqa: F401
        except ImportError as error:
            raise EnvironmentFault("ray is not installed", where="--executor ray", hint=INSTALL) from error
        self._own = _connect(self._options)

    def slots(self) -> int:
        """As many launches as the cluster can hold at once, each of one rank."""
        from xcfg_ray.reserving import nodes

        wanted = bundle(self._options, max(self._options.gpus_per_rank, self._options.gpus_per_engine))
        return max(1, sum(holds(node, wanted) for node in nodes()))

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Run the launch on machines of the cluster."""
        from xcfg_ray.launch import RayLaunch

        request = request_of(job, self._options)
        return RayLaunch(job=job, request=request, patience=self._options.wait, watch=watch, stop=stop).run()

    def close(self) -> None:
        """Disconnect; a cluster that was started here ends."""
        import ray

        if self._own:
            ray.shutdown()


def _connect(options: RayOptions) -> bool:
    """Whether this connected: a connection that was there already stays when the executor is closed."""
    import ray

    if ray.is_initialized() and not options.address:
        return False
    _keep_standard_output()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # a lost cluster is not replaced by one of this machine
    address = options.address or os.environ.get("RAY_ADDRESS") or "local"
    new: dict[str, Any] = {"include_dashboard": False, "object_store_memory": LOCAL_STORE}
    own = new if address == "local" else {}
    try:
        with stdout_to_stderr():
            ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING, **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise EnvironmentFault(f"no Ray cluster at {address}: {error}", where="--executor ray") from error
    return True


def _keep_standard_output() -> None:
    """Ray tells of lost nodes on standard output, which is the command line's."""
    from ray._private import worker

    said = worker.print_to_stdstream
    if getattr(said, "on_stderr", False):
        return

    def on_stderr(data: Mapping[str, object], ignore_prefix: bool) -> None:
        said({**data, "is_err": True}, ignore_prefix)

    on_stderr.on_stderr = True  # type: ignore[attr-defined]
    worker.print_to_stdstream = on_stderr
