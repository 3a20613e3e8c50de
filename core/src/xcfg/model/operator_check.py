"""What checking one kernel backend by itself asks and finds."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled
from xcfg.model.kernel import BoundKernel
from xcfg.model.tolerance import ToleranceContract


@frozen(kw_only=True)
class CheckRequest:
    """``backend`` is the import string of its class. Logits have ``rows`` rows and the vocabulary's columns."""

    operator: str
    backend: str
    dtypes: tuple[str, ...] = field(converter=tupled)
    device: str = "cpu"
    rows: int
    vocab_size: int
    options: Mapping[str, Json] = field(factory=dict, converter=freeze)
    contract: ToleranceContract


@frozen(kw_only=True)
class CheckRow:
    """One quantity under one row of the contract: ``forward``, ``gradient`` or ``invariance``.

    ``worst`` is the largest absolute difference, from float64 or between two runs that must agree, None where it is not
    finite. ``limit`` says what was allowed. ``passed`` is None where nothing was judged, and ``limit`` says why.
    """

    row: str
    case: str
    dtype: str
    worst: float | None = None
    limit: str = ""
    passed: bool | None = None


@frozen(kw_only=True)
class CheckCost:
    """One forward pass beside the production backend's: ratios above 1 are slower and larger than production.

    ``seconds`` is the median of paired runs, ``peak_bytes`` what is held beyond the logits at the peak; None where the
    machine does not tell.
    """

    dtype: str
    seconds: float
    time_ratio: float
    peak_bytes: int | None = None
    memory_ratio: float | None = None


@frozen(kw_only=True)
class CheckReport:
    """``kernels`` are what was bound by dtype, ``refused`` the reasons of the dtypes that were not."""

    kernels: Mapping[str, BoundKernel] = field(factory=dict, converter=freeze)
    refused: Mapping[str, str] = field(factory=dict, converter=freeze)
    rows: tuple[CheckRow, ...] = field(default=(), converter=tupled)
    costs: tuple[CheckCost, ...] = field(default=(), converter=tupled)
