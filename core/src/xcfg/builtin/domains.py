"""Value domains that several knobs share, with the spellings users type."""

from __future__ import annotations

from xcfg.model.dtypes import DTYPE_ALIASES, FLOAT8_ALIASES
from xcfg.model.knob import Domain, Kind

_DTYPES = ("float32", "float16", "bfloat16")


def compute_dtype(*, optional: bool = False) -> Domain:
    """A floating-point dtype that a forward pass can run in."""
    return Domain(kind=Kind.STR, values=_DTYPES, aliases=DTYPE_ALIASES, optional=optional)


def storage_dtype() -> Domain:
    """A dtype that a tensor may be stored in, 8-bit floats included; null leaves it to the engine."""
    return Domain(
        kind=Kind.STR,
        values=(*_DTYPES, "float8_e4m3fn", "float8_e5m2"),
        aliases={**DTYPE_ALIASES, **FLOAT8_ALIASES},
        optional=True,
    )


def count(*, optional: bool = False) -> Domain:
    """A whole number of at least 1."""
    return Domain(kind=Kind.INT, minimum=1, optional=optional)


def switch(*, optional: bool = False) -> Domain:
    """On or off."""
    return Domain(kind=Kind.BOOL, optional=optional)


def choice(*values: str) -> Domain:
    """Exactly one of the named values."""
    return Domain(kind=Kind.STR, values=values)


def name(*, optional: bool = False) -> Domain:
    """An engine's own name for something; the scorer's materializer says which names it can apply."""
    return Domain(kind=Kind.STR, optional=optional)
