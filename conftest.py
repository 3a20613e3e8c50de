"""For all tests of the repository."""

import signal

import pytest


def pytest_configure() -> None:
    """Hear Ctrl-C again where the tests were started in the background.

    A shell starts background jobs with SIGINT ignored, and every process they start inherits that: the tests that
    interrupt a run would then wait for something that cannot happen.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # xdist's own hook reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each file's tests in one worker, for its fixtures, and all that build a vLLM engine in a single one.

    Two such engines at once do not fit a machine of two cores.
    """
    if getattr(config.option, "loadgroup", False):  # set in the workers that run the tests
        for item in items:
            engine = item.get_closest_marker("engine") is not None
            item.add_marker(pytest.mark.xdist_group("engines" if engine else item.nodeid.partition("::")[0]))
