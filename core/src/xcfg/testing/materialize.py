"""How knobs reach the fake scorers, and how they are read back from what is in force."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from xcfg.model.capability import Capability, Supported, Unobservable
from xcfg.model.json import Json
from xcfg.plugin.protocols import Settings

THREADS = "OMP_NUM_THREADS"


class EngineMaterializer:
    """A value of engine construction."""

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Every value of the descriptor can be applied."""
        return Supported()

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Hand the value to ``open``."""
        settings.engine[knob] = value
        return value

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """The value in force."""
        return live.values.get(knob, Unobservable(f"{knob} left no trace in the fake engine"))


class RequestMaterializer(EngineMaterializer):
    """A value of one scoring call."""

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Hand the value to ``score``."""
        settings.request[knob] = value
        return value


class ThreadsMaterializer(EngineMaterializer):
    """``execution.threads`` through the variable that numerical libraries read when they are loaded."""

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Set the variable of the process."""
        settings.env[THREADS] = str(value)
        return value

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """The variable of the running process."""
        text = os.environ.get(THREADS, "")
        return int(text) if text.isdigit() else Unobservable(f"{THREADS} is {text!r}")


class BackendMaterializer(RequestMaterializer):
    """``logp.backend``: the runner binds the operator and reads from the binding what ran."""

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """The engine was handed a function and cannot tell whose it is."""
        return Unobservable("known from the bound operator alone")
