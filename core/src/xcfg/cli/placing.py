"""Where the ranks of a side run, in which interpreter, and how long they may take: options of commands that execute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import field, frozen

from xcfg.errors import EnvironmentFault, InvalidInput, PluginError
from xcfg.model.json import tupled

if TYPE_CHECKING:
    from xcfg.model.scorer import Role
    from xcfg.plugin.executor import Executor
    from xcfg.plugin.registry import Registry

_PYTHON = click.Path(exists=True, dir_okay=False, path_type=Path)
_SECONDS = click.FloatRange(min=1)
_OPTIONS = (
    click.option(
        "--timeout", type=_SECONDS, default=900.0, show_default=True, help="Seconds to score a side run, or to sample."
    ),
    click.option(
        "--start-timeout", type=_SECONDS, default=1800.0, show_default=True, help="Seconds until an engine is open."
    ),
    click.option(
        "--stop-timeout", type=_SECONDS, default=120.0, show_default=True, help="Seconds an engine may take to close."
    ),
    click.option("--rollout-python", type=_PYTHON, help="Interpreter of the rollout side's ranks (default: this one)."),
    click.option("--training-python", type=_PYTHON, help="The same for the training side."),
    click.option(
        "--executor", default="local", show_default=True, metavar="ID", help="Where engines run: local, or a plugin's."
    ),
    click.option("--executor-option", multiple=True, metavar="NAME=VALUE", help="An option of the executor."),
)


def placing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which hands their values to :meth:`Placing.taken`."""
    for decorate in reversed(_OPTIONS):
        command = decorate(command)
    return command


@frozen(kw_only=True)
class Placing:
    """What the options said; limits in seconds."""

    timeout: float
    start_timeout: float
    stop_timeout: float
    rollout_python: Path | None
    training_python: Path | None
    executor: str
    executor_options: tuple[str, ...] = field(converter=tupled)

    @classmethod
    def taken(cls, given: dict[str, Any]) -> Placing:
        """The values, which are taken out of ``given``."""
        return cls(
            timeout=given.pop("timeout"),
            start_timeout=given.pop("start_timeout"),
            stop_timeout=given.pop("stop_timeout"),
            rollout_python=given.pop("rollout_python"),
            training_python=given.pop("training_python"),
            executor=given.pop("executor"),
            executor_options=given.pop("executor_option"),
        )

    @property
    def interpreters(self) -> dict[Role, str]:
        """The interpreters that were named, not resolved: that of a virtual environment is a link."""
        from xcfg.model.scorer import Role

        named = {Role.ROLLOUT: self.rollout_python, Role.TRAINING: self.training_python}
        return {role: str(path.absolute()) for role, path in named.items() if path is not None}

    @contextmanager
    def opened(self, registry: Registry) -> Iterator[Executor]:
        """The executor, closed at the end.

        Raises PluginError for an unknown id, InvalidInput for an option it does not have, EnvironmentFault where it
        needs what is not installed.
        """
        from importlib.util import find_spec

        from xcfg.plugin.target import load_target
        from xcfg.plugin.theirs import theirs

        found = registry.executor(self.executor)
        options = dict(map(_pair, self.executor_options))
        if unknown := sorted(options.keys() - found.options.keys()):
            raise InvalidInput(
                f"the executor {found.id} has no option {', '.join(unknown)}",
                where="--executor-option",
                hint=f"it has {', '.join(found.options)}" if found.options else "it has none",
            )
        if missing := [name for name in found.requires if find_spec(name) is None]:
            raise EnvironmentFault(
                f"{', '.join(missing)} is not installed", where=f"executor {found.id}", hint=found.install
            )
        owner = registry.owner("executor", found.id)
        make = load_target(found.target, owner)
        with theirs(f"the executor {found.id}", owner):
            made = make(options)
        if not hasattr(made, "run"):
            raise PluginError(f"{found.target} is no executor", where=found.id)
        try:
            yield made
        finally:
            made.close()


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput(f"{text!r} is not NAME=VALUE", where="--executor-option")
    return name, value
