"""Descriptors of executors: where the processes of a launch run."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import freeze, tupled


@frozen(kw_only=True)
class ExecutorDescriptor:
    """An executor a plugin brings. ``target`` is an import string ``module:Class``, loaded when its id is chosen.

    ``requires`` are import names it needs, ``install`` the pip line that brings them. ``options`` gives each option
    that ``--executor-option NAME=VALUE`` may set, with a sentence.
    """

    id: str
    summary: str
    target: str
    requires: tuple[str, ...] = field(default=(), converter=tupled)
    install: str = ""
    options: Mapping[str, str] = field(factory=dict, converter=freeze)
