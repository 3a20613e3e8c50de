"""Whether a machine would compute with the code that a result is said to be made with."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.plugin.executor import Job
from xcfg.plugin.installed import Installed, installed


def unlike(job: Job, there: Installed) -> str:
    """The first thing that is other there than here, in words; empty where nothing is."""
    return next(_differences(installed(job.code, job.python), there), "")


def _differences(here: Installed, there: Installed) -> Iterator[str]:
    if here.python != there.python:
        yield f"Python is {there.python} there, {here.python} here"
    if here.machine != there.machine:
        yield f"the processor is {there.machine} there, {here.machine} here"
    for mine, other in ((here.distributions, there.distributions), (here.engine, there.engine)):
        for name, version in mine.items():
            if other.get(name) != version:
                yield f"{name} is {other.get(name) or 'not installed'} there, {version or 'not installed'} here"
    for name, digest in here.code.items():
        if there.code.get(name) != digest:
            yield f"the source of {name} is another one"
