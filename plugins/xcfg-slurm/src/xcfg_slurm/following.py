"""Follows a submitted job to its end."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from typing import Any

from attrs import define, field

from xcfg.plugin.executor import Ended, Ending, Job
from xcfg_slurm.submitting import FOLDER
from xcfg_slurm.task import LOG

WAITING = frozenset({"READY", "PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "UNKNOWN"})
FAILED = {"COMPLETED": 1, "FINISHED": 1, "FAILED": 1, "OUT_OF_MEMORY": 137, "CANCELLED": 143}
"""Exit codes of jobs that ended by themselves or by somebody's will. From any other state the node went, or was taken
away before its time (NODE_FAIL, PREEMPTED, TIMEOUT): another job goes on."""
_TICK_S = 0.2
_ASK_S = 15.0
"""How often Slurm is asked for a state while files tell nothing new."""
_LATE_S = 30.0
"""How long a file may take to be seen here once its job has ended, and a job to end once it is cancelled."""


@define(kw_only=True)
class Following:
    """One launch as submitit's job ``submitted``, over ``nodes``."""

    job: Job
    submitted: Any
    nodes: int
    watch: Callable[[], object]
    stop: threading.Event
    _began: float = field(factory=time.monotonic)
    _asked: float = field(factory=time.monotonic)
    _over: float = 0.0

    def end(self) -> Ended:
        """Wait until the job has ended, calling ``watch`` all the while; a ``stop`` cancels it."""
        while (ended := self._ended()) is None:
            self.watch()
            time.sleep(_TICK_S)
        well = ended.ending is Ending.EXITED and ended.code == 0
        self._finish(cancel=not well)
        self.watch()
        self._tidy(everything=well)
        return ended

    def _ended(self) -> Ended | None:
        if self.stop.is_set():
            return self._as(Ending.STOPPED)
        written = self._written()
        worst = next((item for item in written if item.ending is not Ending.EXITED or item.code), None)
        if worst is not None and worst.ending is Ending.STOPPED:  # not by this run
            return self._by_state()
        return worst or (written[0] if len(written) == self.nodes else self._by_state())

    def _by_state(self) -> Ended | None:
        """The end of a job whose command did not come to its own; None while it may still do so."""
        now = time.monotonic()
        if not self._over:
            if now - self._asked < _ASK_S and not self.submitted.done():
                return None
            self._asked = now
            if self.state() in WAITING:
                return None
            self._over = now
        state = self.state()
        written = self._written()
        if state in ("COMPLETED", "FINISHED") and now - self._over < _LATE_S and not written:
            return None
        told = any(item.ending is Ending.STOPPED for item in written)
        if state not in FAILED or (told and state != "CANCELLED"):
            return self._as(Ending.LOST)
        return self._as(Ending.EXITED, FAILED[state])

    def state(self) -> str:
        """Slurm's word for the state of the job."""
        info = self.submitted.get_info(mode="force")
        return str(info.get("State") or info.get("jobState") or "UNKNOWN").split()[0].upper()

    def _written(self) -> list[Ended]:
        """How the commands of the nodes ended, as far as they have."""
        found = [self.job.ended(node) for node in range(self.nodes)]
        return [item for item in found if item is not None]

    def _as(self, ending: Ending, code: int = 0) -> Ended:
        return Ended(ending=ending, code=code, seconds=time.monotonic() - self._began)

    def _finish(self, *, cancel: bool) -> None:
        """Wait until nothing of the job is left: its commands write down their ends as the last thing they do."""
        if cancel:
            self.submitted.cancel(check=False)
        until = time.monotonic() + _LATE_S
        while time.monotonic() < until:
            begun = [node for node in range(self.nodes) if (self.job.place / "logs" / LOG.format(node=node)).exists()]
            if self.submitted.done() and all(self.job.ended(node) is not None for node in begun):
                return
            time.sleep(_TICK_S)

    def _tidy(self, *, everything: bool) -> None:
        """Submitit's pickles are never kept; what it logged is, where something went wrong."""
        folder = self.job.place / FOLDER
        if everything:
            shutil.rmtree(folder, ignore_errors=True)
        for path in folder.glob("*.pkl"):
            path.unlink(missing_ok=True)
