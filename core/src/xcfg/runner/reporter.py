"""What a rank leaves in the staging folders: phase, records, failures. Every file appears whole or not at all."""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import define, evolve, field
from safetensors.numpy import save

from xcfg.model.json import Json
from xcfg.model.sample import Samples
from xcfg.runner.durable import NO_ROOM, encode, replace
from xcfg.runner.failure import RankFailure, classify
from xcfg.runner.rank_record import RankRecord, failure_name, phase_name, record_name, tensor_name

NO_ROOM_EXIT = 74
"""Exit code (EX_IOERR) of a rank that could not even write down why it failed."""


@define
class Reporter:
    """The writer of one rank. ``phases`` sums the seconds spent in each phase since the last record."""

    folder: Path
    rank: int
    phase: str = ""
    phases: dict[str, float] = field(factory=dict)

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Time a phase and name it on disk, so that the parent knows where a killed rank was.

        After a failure the phase keeps its name: it is the one to report.
        """
        self.phase = phase
        replace(self.folder / phase_name(self.rank), phase.encode())
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases[phase] = self.phases.get(phase, 0.0) + time.monotonic() - started

    def record(self, folder: Path, record: RankRecord, samples: Samples) -> None:
        """Write tensors, then the record that names their digest; the record's presence means complete."""
        data = save(samples.arrays())
        replace(folder / tensor_name(self.rank), data)
        complete = evolve(record, samples=hashlib.sha256(data).hexdigest(), phases=self.phases)
        replace(folder / record_name(self.rank), encode(complete))
        self.phases = {}

    def write(self, path: Path, value: Mapping[str, Json]) -> None:
        """Write a JSON file."""
        replace(path, encode(value))

    def failed(self, folder: Path, error: BaseException) -> int:
        """Write down why this rank failed in ``folder`` and in the log; returns the exit code."""
        traceback.print_exception(error, file=sys.stderr)
        sys.stderr.flush()
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        failure = RankFailure(status=classify(error, self.phase), phase=self.phase, reason=text, at=time.time())
        try:
            (folder / tensor_name(self.rank)).unlink(missing_ok=True)
            replace(folder / failure_name(self.rank), encode(failure))
        except OSError as second:
            return NO_ROOM_EXIT if second.errno in NO_ROOM else 1
        return 1
