"""What a cube holds: names, dimensions, dtypes and fill values of its arrays, and the encoding of statuses.

Three families of arrays share the root group. *Cell* arrays have one dimension an axis and, after them, the
dimensions named here. *Case* arrays are tables over ``case``, every planned case in the cube's own order. *Flat*
arrays are ragged: the values of a case lie at ``[start, start + count)``.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from xcfg.model.json import Json
from xcfg.model.status import Status

SCHEMA: Final = "xcfg.cube/1"

CELL_BLOCK: Final = 1_000
"""Most cells in one chunk; measured: 3.8 ms to write a cell, 28 ms to load the status of 100,000."""

CASE_BLOCK: Final = 10_000
"""Most rows of the case table in one chunk. Of the evidence, which is long, and of what was measured: CELL_BLOCK."""

AXIS_CHUNK: Final = 1
"""Knobs in one chunk of ``requested``, ``materialized`` and ``observed``: a query asks for one."""

FLAT_CHUNK: Final = 65_536
"""Chunk of the flat arrays, in elements."""

MEASURED: Final = "measured"
"""Name of the subgroup outside the claim of reproducible bytes."""

SIDES: Final = ("rollout", "training")

NOT_RUN: Final = "not_run"

STATUS_CODES: Final = {
    Status.PASS: 1,
    Status.FAIL: 2,
    Status.ZERO_ACTIVE_TOKENS: 3,
    Status.NON_FINITE: 4,
    Status.NO_THRESHOLD: 5,
    Status.INVALID_IDENTITY: 6,
    Status.INVALID_PROVENANCE: 7,
    Status.INVALID_ARTIFACT: 8,
    Status.UNSUPPORTED: 9,
    Status.LAUNCH_ERROR: 10,
    Status.ENVIRONMENT_ERROR: 11,
    Status.SCORER_ERROR: 12,
    Status.TIMEOUT: 13,
}
"""Stored numbers of the statuses: part of the schema, never renumbered. 0 is a cell that was not run."""

STATUS_NAMES: Final = {0: NOT_RUN, **{code: status.value for status, code in STATUS_CODES.items()}}

_TRISTATE: Final = {"flag_values": [-1, 0, 1], "flag_meanings": "unknown no yes"}
_STATUS_FLAGS: Final = {"flag_values": list(STATUS_NAMES), "flag_meanings": " ".join(STATUS_NAMES.values())}


@frozen
class ArraySpec:
    """One array: dimensions after those of its family, numpy dtype name (``str`` is variable length), fill value."""

    name: str
    dims: tuple[str, ...]
    dtype: str
    fill: Json
    description: str
    attributes: Json = None


CELL_ARRAYS: Final = (
    ArraySpec("status", (), "uint8", 0, "verdict of the cell; absence is read here, never from NaN", _STATUS_FLAGS),
    ArraySpec("metrics", ("metric",), "float64", float("nan"), "metrics over active tokens; NaN where undefined"),
    ArraySpec("active_tokens", (), "int64", 0, "active tokens compared"),
    ArraySpec("threshold", (), "float64", float("nan"), "limit of max_abs_dlogp, row of dtype", {"units": "nats"}),
    ArraySpec("within_baseline_row", (), "int8", -1, "max_abs_dlogp within the row of the baseline's dtype", _TRISTATE),
    ArraySpec("case_id", (), "str", "", "id of the case of this cell"),
    ArraySpec("dtype", (), "str", "", "lower-precision compute dtype of the two sides"),
    ArraySpec("requested", ("side", "axis"), "str", "", "value asked for, as JSON; empty where the side has none"),
    ArraySpec("materialized", ("side", "axis"), "str", "", "value handed to the engine, as JSON"),
    ArraySpec("observed", ("side", "axis"), "str", "", "value read back from the live engine, as JSON"),
    ArraySpec(
        "rank_metrics",
        ("rollout_rank", "train_rank", "metric"),
        "float64",
        float("nan"),
        "metrics over the active tokens of one pair of ranks",
    ),
    ArraySpec("rank_active_tokens", ("rollout_rank", "train_rank"), "int64", 0, "active tokens of one pair of ranks"),
)

PROVENANCE: Final = ("requested", "materialized", "observed")
"""The cell arrays of what became of each knob on each side."""

CASE_ARRAYS: Final = (
    ArraySpec("case", (), "str", "", "case ids, every planned case"),
    ArraySpec("case_name", (), "str", "", "name of an explicit case or of the baseline"),
    ArraySpec("case_changed", (), "str", "", "JSON list of the knobs in which the case differs from the baseline"),
    ArraySpec("case_cell", ("axis",), "int64", -1, "index of the case's cell along each axis"),
    ArraySpec("side_id", ("side",), "str", "", "id of the side run"),
    ArraySpec("token_start", (), "int64", 0, "first element of the case in the token arrays"),
    ArraySpec("token_count", (), "int64", 0, "elements of the case in the token arrays"),
    ArraySpec("sequence_start", (), "int64", 0, "first element of the case in sequence_id"),
    ArraySpec("sequence_count", (), "int64", 0, "elements of the case in sequence_id"),
    ArraySpec("rollout_ranks", (), "int64", 0, "1 + the highest rollout rank compared"),
    ArraySpec("train_ranks", (), "int64", 0, "1 + the highest training rank compared"),
    ArraySpec("record", (), "str", "", "JSON: reason, worst token, findings, provenance of every knob, rank metadata"),
)

TOKEN_ARRAYS: Final = (
    ArraySpec("token_rollout_logp", (), "float32", float("nan"), "rollout logprob", {"units": "nats"}),
    ArraySpec("token_train_logp", (), "float32", float("nan"), "training logprob", {"units": "nats"}),
    ArraySpec("token_id", (), "int64", -1, "token id"),
    ArraySpec("token_position", (), "int64", -1, "position in the response, from 0"),
    ArraySpec("token_sequence", (), "int64", -1, "index into sequence_id, from the case's sequence_start"),
    ArraySpec("token_rollout_rank", (), "int64", -1, "rank that scored it in the rollout"),
    ArraySpec("token_train_rank", (), "int64", -1, "rank that scored it in training"),
)

TOKEN_FIELDS: Final = {
    "token_rollout_logp": "rollout_logp",
    "token_train_logp": "train_logp",
    "token_id": "token",
    "token_position": "position",
    "token_sequence": "sequence",
    "token_rollout_rank": "rollout_rank",
    "token_train_rank": "train_rank",
}
"""The attribute of :class:`xcfg.model.outcome.PairedTokens` that fills each token array."""

SEQUENCE_ARRAY: Final = ArraySpec("sequence_id", (), "str", "", "sequence ids; cases with the same list share it")

RESERVED: Final = frozenset(
    [spec.name for spec in (*CELL_ARRAYS, *CASE_ARRAYS, *TOKEN_ARRAYS, SEQUENCE_ARRAY)]
    + [dim for spec in CELL_ARRAYS for dim in spec.dims]
    + ["token", "sequence", MEASURED]
)
"""Names an axis cannot have."""
