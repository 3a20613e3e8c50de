"""The kernel operators of one scoring call: bound beside the scorer, or by the scorer where its logits are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from attrs import evolve, frozen

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Unsupported
from xcfg.model.kernel import BoundKernel
from xcfg.plugin.protocols import HostedOperator, KernelBackend, OperatorHost, Scorer
from xcfg.plugin.target import resolve
from xcfg.runner.child_builds import Builds
from xcfg.runner.counted import Counted
from xcfg.runner.launch import OperatorTask


@frozen(kw_only=True)
class Operators:
    """``calls`` are bound beside the scorer, each by its backend; ``hosted`` say what the scorer's processes called."""

    calls: Mapping[str, Counted]
    backends: Mapping[str, KernelBackend]
    hosted: Mapping[str, Callable[[], BoundKernel | None]]

    def identify(self, rows: int) -> dict[str, BoundKernel]:
        """What ran; an operator that was never called on a rank with rows is left out."""
        beside = {
            name: backend.identify(self.calls[name].operator)
            for name, backend in self.backends.items()
            if self.calls[name].calls or not rows
        }
        told = {name: tell() for name, tell in self.hosted.items()}
        return beside | {name: bound for name, bound in told.items() if bound is not None}


def bind(scorer: Scorer, tasks: tuple[OperatorTask, ...], builds: Builds, stack: ExitStack) -> Operators:
    """Bind every operator until the stack unwinds. Raises UnsupportedError where the scorer or a backend refuses."""
    found = Operators(calls={}, backends={}, hosted={})
    for task in tasks:
        request = scorer.kernel_request(task.operator, task.options)
        if request is None:
            raise UnsupportedError(f"the scorer lets no backend take over {task.operator}", where=task.operator)
        request = evolve(request, artifact=builds.paths.get(task.operator, ""))
        if isinstance(scorer, OperatorHost):
            asked = HostedOperator(backend=task.backend, target=task.target, request=request)
            tell = stack.enter_context(scorer.host(asked))
            found = evolve(found, hosted={**found.hosted, task.operator: tell})
        else:
            backend: KernelBackend = resolve(task.target)()
            capability = backend.probe(request)
            if isinstance(capability, Unsupported):
                raise UnsupportedError(f"{task.operator} = {task.backend}: {capability.reason}", where=task.operator)
            call = Counted(stack.enter_context(backend.bind(request)))
            calls, backends = {**found.calls, task.operator: call}, {**found.backends, task.operator: backend}
            found = evolve(found, calls=calls, backends=backends)
    return found
