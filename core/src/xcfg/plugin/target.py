"""Import strings of descriptors, resolved where the object is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from xcfg.errors import PluginError
from xcfg.plugin.raised import said
from xcfg.plugin.stdout import stdout_to_stderr


def resolve(target: str) -> Any:
    """The object at ``module:attribute``. Raises whatever importing it raises."""
    module, _, path = target.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def load_target(target: str, owner: str) -> Any:
    """The object at ``module:attribute``. Raises PluginError, naming the distribution ``owner``, if there is none."""
    try:
        with stdout_to_stderr():
            return resolve(target)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"{target} cannot be loaded: {said(error)}"
        raise PluginError(message, where=owner) from error
