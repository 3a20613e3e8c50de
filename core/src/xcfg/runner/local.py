"""The executor ``local``: launches run on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from xcfg.errors import InvalidInput
from xcfg.plugin.executor import Ended, Job
from xcfg.runner.launching import run_launch


class LocalExecutor:
    """Runs each launch under a guard of this process."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """It has no options."""
        if options:
            raise InvalidInput(f"the executor local has no option {', '.join(sorted(options))}", where="--executor")

    def slots(self) -> None:
        """As many launches as memory and cores allow."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Run the launch here."""
        return run_launch(job, watch, stop)

    def close(self) -> None:
        """Nothing is held."""
