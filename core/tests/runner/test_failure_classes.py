import errno

import pytest

from xcfg.errors import EnvironmentFault, UnsupportedError
from xcfg.model.status import Status
from xcfg.runner.failure import classify
from xcfg.runner.jobs import default_jobs


class OutOfMemoryError(RuntimeError):
    """Named like torch's."""


def _caused(cause):
    error = RuntimeError("engine core failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "phase", "status"),
    [
        (RuntimeError("x"), "open", Status.LAUNCH_ERROR),
        (RuntimeError("x"), "import", Status.LAUNCH_ERROR),
        (RuntimeError("x"), "score", Status.SCORER_ERROR),
        (RuntimeError("x"), "sample", Status.SCORER_ERROR),
        (FileNotFoundError(errno.ENOENT, "x"), "open", Status.LAUNCH_ERROR),
        (UnsupportedError("x"), "open", Status.UNSUPPORTED),
        (UnsupportedError("x"), "score", Status.UNSUPPORTED),
        (_caused(UnsupportedError("x")), "score", Status.SCORER_ERROR),
        (ModuleNotFoundError("torch"), "import", Status.ENVIRONMENT_ERROR),
        (EnvironmentFault("x"), "score", Status.ENVIRONMENT_ERROR),
        (OSError(errno.EADDRINUSE, "x"), "open", Status.ENVIRONMENT_ERROR),
        (OSError(errno.ENOSPC, "x"), "score", Status.ENVIRONMENT_ERROR),
        (OutOfMemoryError("cuda"), "score", Status.ENVIRONMENT_ERROR),
        (_caused(MemoryError()), "open", Status.ENVIRONMENT_ERROR),
    ],
)
def test_each_error_has_its_status(error, phase, status):
    assert classify(error, phase) == status


def test_an_error_handled_meanwhile_explains_nothing():
    try:
        try:
            raise ImportError("an optional kernel")
        except ImportError:
            raise RuntimeError("the real one")  # noqa: B904
    except RuntimeError as error:
        assert classify(error, "score") == Status.SCORER_ERROR


@pytest.mark.parametrize(("cores", "jobs"), [(1, 1), (2, 1), (3, 1), (4, 1), (8, 2), (64, 16)])
def test_jobs_follow_the_cores(monkeypatch, cores, jobs):
    monkeypatch.setattr("xcfg.runner.jobs._cores", lambda: cores)
    monkeypatch.setattr("xcfg.runner.jobs._shared_device", lambda: False)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("", (), {"available": 1 << 40}))
    assert default_jobs(8 << 20) == jobs


def test_jobs_follow_the_memory_and_the_device(monkeypatch):
    monkeypatch.setattr("xcfg.runner.jobs._cores", lambda: 64)
    monkeypatch.setattr("xcfg.runner.jobs._shared_device", lambda: False)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("", (), {"available": 64 << 30}))
    # 3 GiB of libraries and four times the weights: two engines of 7 GiB weights fit into 64 GiB
    assert default_jobs(7 << 30) == 2
    assert default_jobs(100 << 30) == 1
    monkeypatch.setattr("xcfg.runner.jobs._shared_device", lambda: True)
    assert default_jobs(1 << 20) == 1
