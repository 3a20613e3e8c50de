"""Where operators are bound: beside the scorer, or by a scorer whose logits are elsewhere. The scorers are fakes."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import pytest

from xcfg.errors import UnsupportedError
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg.runner.child_builds import Builds
from xcfg.runner.child_operators import bind
from xcfg.runner.launch import OperatorTask

TASK = OperatorTask(
    operator="selected_logprob", backend="fake_exact", target="xcfg.testing.backends:ExactBackend", options={"a": 1}
)
NO_BUILDS = Builds(tasks=())


class Beside:
    """Lets a backend take over on numpy arrays of its own process."""

    device = "cpu"

    def kernel_request(self, operator, options):
        return KernelRequest(operator=operator, device=self.device, dtype="float32", vocab_size=3, options=options)


class Hosting(Beside):
    """Binds in processes of its own, of which this test plays the memory."""

    def __init__(self, called: BoundKernel | None) -> None:
        self.called = called
        self.asked = []
        self.open = False

    @contextmanager
    def host(self, asked):
        self.asked.append(asked)
        self.open = True
        try:
            yield lambda: self.called
        finally:
            self.open = False


class Without(Beside):
    def kernel_request(self, operator, options):
        return None


def test_beside_the_scorer_an_operator_counts_once_it_is_called() -> None:
    import numpy as np

    with ExitStack() as stack:
        bound = bind(Beside(), (TASK,), NO_BUILDS, stack)
        assert bound.identify(rows=2) == {}
        assert bound.identify(rows=0)["selected_logprob"].backend == "fake_exact"  # nothing to call it for
        bound.calls["selected_logprob"](np.zeros((1, 3), dtype=np.float32), np.zeros(1, dtype=np.int64))
        assert bound.identify(rows=2)["selected_logprob"].backend == "fake_exact"


def test_a_host_is_given_the_request_and_asked_what_it_called() -> None:
    kernel = BoundKernel(backend="fake_exact", concrete="there", build="1")
    scorer = Hosting(kernel)
    with ExitStack() as stack:
        bound = bind(scorer, (TASK,), Builds(tasks=(), paths={"selected_logprob": "/lib/a.so"}), stack)
        assert scorer.open and not bound.calls
        assert bound.identify(rows=2) == {"selected_logprob": kernel}
    assert not scorer.open
    (asked,) = scorer.asked
    assert (asked.backend, asked.target) == (TASK.backend, TASK.target)
    assert (asked.request.options, asked.request.artifact) == ({"a": 1}, "/lib/a.so")


def test_what_a_host_did_not_call_is_left_out() -> None:
    with ExitStack() as stack:
        assert bind(Hosting(None), (TASK,), NO_BUILDS, stack).identify(rows=2) == {}


def test_refusals_name_the_operator() -> None:
    with ExitStack() as stack, pytest.raises(UnsupportedError, match="lets no backend take over selected_logprob"):
        bind(Without(), (TASK,), NO_BUILDS, stack)
    scorer = Beside()
    scorer.device = "cuda"
    with ExitStack() as stack, pytest.raises(UnsupportedError, match="fake_exact runs on a CPU, not on cuda"):
        bind(scorer, (TASK,), NO_BUILDS, stack)
