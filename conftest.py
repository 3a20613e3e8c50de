"""For all tests of the repository."""

import signal


def pytest_configure() -> None:
    """Hear Ctrl-C again where the tests were started in the background.

    A shell starts background jobs with SIGINT ignored, and every process they start inherits that: the tests that
    interrupt a run would then wait for something that cannot happen.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
