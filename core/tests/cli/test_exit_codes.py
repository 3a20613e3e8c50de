"""Which exit code wins when several apply: the order of the command line's reference."""

import pytest

from xcfg.exitcodes import ExitCode, worst
from xcfg.model.status import Status


def test_precedence() -> None:
    order = [3, 4, 7, 6, 8, 1, 0]
    for better in range(1, len(order)):
        for worse in range(better):
            assert worst([ExitCode(order[better]), ExitCode(order[worse])]) == order[worse]


def test_nothing_is_5() -> None:
    assert worst([]) == 5


@pytest.mark.parametrize("status", Status)
def test_only_pass_exits_0(status: Status) -> None:
    assert (status.exit_code == 0) is (status is Status.PASS)
