"""Which row of the contract judges, and the rows themselves."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from xcfg.model.attempt import SideResult
from xcfg.model.knob import SourceClass
from xcfg.model.result import Finding
from xcfg.model.sample import RankInfo
from xcfg.model.tolerance import DTYPE_ORDER, ToleranceContract


@frozen(kw_only=True)
class Row:
    """The judging dtype with its limits by metric; ``threshold`` None and a ``reason`` where the contract has none."""

    dtype: str
    threshold: float | None
    limits: dict[str, float]
    reason: str = ""


def lowest(dtypes: Sequence[str]) -> str:
    """The least precise of the dtypes. One outside ``DTYPE_ORDER`` (float8, unknown) comes below all that are in it."""
    unordered = sorted(name for name in dtypes if name not in DTYPE_ORDER)
    return unordered[0] if unordered else max(dtypes, key=DTYPE_ORDER.index, default="")


def judging_row(rollout: SideResult, training: SideResult, contract: ToleranceContract) -> Row:
    """The row of the lower-precision compute dtype over all ranks of both sides."""
    return row(lowest([info.compute_dtype for info in (*rollout.ranks, *training.ranks)]), contract)


def row(dtype: str, contract: ToleranceContract) -> Row:
    """The row of one dtype."""
    threshold = contract.max_abs_dlogp.get(dtype)
    tables = {
        "max_abs_dlogp": contract.max_abs_dlogp,
        "approx_kl0": contract.approx_kl0,
        "clipfrac0": contract.clipfrac0,
    }
    reason = ""
    if threshold is None:
        named = f"compute dtype {dtype!r}" if dtype else "an unknown compute dtype"
        reason = f"contract {contract.ref.id} {contract.ref.version} has no max_abs_dlogp row for {named}"
    return Row(
        dtype=dtype,
        threshold=threshold,
        limits={name: table[dtype] for name, table in tables.items() if dtype in table},
        reason=reason,
    )


def dtype_findings(side: str, ranks: Sequence[RankInfo]) -> list[Finding]:
    """A finding where the ranks of one side compute in different dtypes; the lowest judges."""
    dtypes = {str(info.rank): info.compute_dtype for info in sorted(ranks, key=lambda info: info.rank)}
    if len(set(dtypes.values())) < 2:
        return []
    return [
        Finding(
            source_class=SourceClass.REPRESENTATION.value,
            subclass="ranks disagree about the compute dtype",
            rule="compute_dtype_by_rank",
            evidence={"side": side, "compute_dtype": dtypes, "judged_as": lowest(list(dtypes.values()))},
            advice=f"give every {side} rank the same compute dtype; the least precise of them judges",
        )
    ]
