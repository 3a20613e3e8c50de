"""Case ids from canonical text that is put together from parts made once.

The result is that of :func:`xcfg.model.case.case_id`: RFC 8785 sorts the keys of an object and writes each member by
itself, so the text of a case is the text of its members in that order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Protocol

from attrs import evolve

from xcfg.model.case import SideConfig
from xcfg.model.ids import canonical
from xcfg.model.json import Json


class Hash(Protocol):
    """A SHA-256 in progress."""

    def copy(self) -> Hash:
        """The same state, to go on by itself."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""

    def hexdigest(self) -> str:
        """The digest of what was added."""


class CaseIds:
    """The ids of cases that share a token source and a contract."""

    def __init__(self, tokens: Json, contract: Json) -> None:
        self._before = hashlib.sha256(b'{"contract":' + canonical(contract) + b',"rollout":')
        self._between = b',"tokens":' + canonical(tokens) + b',"training":'
        self._members: dict[tuple[str, type, Json], bytes] = {}
        self._sorted: dict[tuple[str, ...], list[str]] = {}
        self._frames: dict[Hashable, tuple[bytes, bytes]] = {}

    def text(self, config: SideConfig) -> bytes:
        """The canonical text of ``config.key()``."""
        knobs = config.knobs
        names = tuple(knobs)
        if names not in self._sorted:
            self._sorted[names] = sorted(names, key=lambda name: name.encode("utf-16-be"))
        before, after = self._frame(config)
        members = [self._member(name, knobs[name]) for name in self._sorted[names] if knobs[name] is not None]
        return before + b",".join(members) + after

    def _member(self, name: str, value: Json) -> bytes:
        key = (name, type(value), value)
        if key not in self._members:
            self._members[key] = canonical({name: value})[1:-1]
        return self._members[key]

    def _frame(self, config: SideConfig) -> tuple[bytes, bytes]:
        """The text before and after the knobs. It is kept where a hashable key says all of it: without options."""
        key: Hashable = None
        if not any(choice.options for choice in config.operators.values()):
            operators = tuple((name, choice.backend) for name, choice in config.operators.items())
            key = (config.role, config.scorer, config.checkpoint, operators)
            if key in self._frames:
                return self._frames[key]
        # Quotes inside texts are escaped and the checkpoint, which comes first, holds no object: this place is the one.
        before, name, after = canonical(evolve(config, knobs={}).key()).partition(b'"knobs":{')
        frame = (before + name, after)
        if key is not None:
            self._frames[key] = frame
        return frame

    def start(self, rollout: bytes) -> Hash:
        """What every case with this rollout side begins with."""
        state = self._before.copy()
        state.update(rollout + self._between)
        return state

    def id(self, start: Hash, training: bytes) -> str:
        """The first 16 hex digits for a training side."""
        state = start.copy()
        state.update(training + b"}")
        return state.hexdigest()[:16]

    def of(self, rollout: SideConfig, training: SideConfig) -> str:
        """The id of a pair."""
        return self.id(self.start(self.text(rollout)), self.text(training))
