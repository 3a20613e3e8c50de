"""The tolerance contract: data, cited by id, version and digest."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import freeze

SCHEMA = "xcfg.tolerance/1"

DEFAULT_CONTRACT = "ws1"
"""Judges where nothing else is named."""

DTYPE_ORDER = ("float32", "float16", "bfloat16")
"""From highest to lowest precision of the compute dtypes that may have a row."""


@frozen(kw_only=True)
class ContractRef:
    """Which contract judged: enough to find the same one again."""

    id: str
    version: str
    digest: str


@frozen(kw_only=True)
class Tolerance:
    """Absolute and relative tolerance of an operator class."""

    atol: float
    rtol: float


@frozen(kw_only=True)
class ToleranceContract:
    """Limits of the dlogp metrics by dtype name. A dtype without an entry has no threshold.

    ``forward`` and ``gradient`` are those of single operators, by operator class and dtype. ``invariance`` says what a
    row's result may change by with the other rows and the threads: ``bitwise``, nothing.
    """

    ref: ContractRef
    clip_interval: tuple[float, float]
    max_abs_dlogp: Mapping[str, float] = field(converter=freeze)
    approx_kl0: Mapping[str, float] = field(converter=freeze)
    clipfrac0: Mapping[str, float] = field(converter=freeze)
    forward: Mapping[str, Mapping[str, Tolerance]] = field(factory=dict, converter=freeze)
    gradient: Mapping[str, Mapping[str, Tolerance]] = field(factory=dict, converter=freeze)
    invariance: Mapping[str, str] = field(factory=dict, converter=freeze)
