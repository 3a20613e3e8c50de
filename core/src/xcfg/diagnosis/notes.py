"""Where what the sides state and what the numbers show disagree: which is believed, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xcfg.diagnosis.floor import ROOM, TYPICAL, Floor
from xcfg.diagnosis.observed import Observed, Stated
from xcfg.diagnosis.signature import Signature

CLOSE = 0.05


def notes(observed: Observed, named: Sequence[Signature], floor: Floor) -> list[str]:
    """One sentence a contradiction."""
    kinds = {item.kind: item for item in named}
    return [*_temperature(observed, kinds), *_kept(observed, kinds), *_dtype(floor)]


def _temperature(observed: Observed, kinds: dict[str, Signature]) -> Iterator[str]:
    rollout, training = observed.rollout.stated, observed.training.stated
    stated = _effective(rollout) / _effective(training)
    item = kinds.get("temperature")
    if item is None:
        if abs(stated - 1.0) > CLOSE:
            yield (
                f"the stated temperatures differ ({_said(rollout)} against {_said(training)}) and the logprobs show "
                "nothing of it: the data are believed"
            )
        return
    slope = float(item.evidence["training_over_rollout_slope"])
    told = rollout.temperature is not None or training.temperature is not None
    if told and abs(slope / stated - 1.0) > CLOSE:
        yield (
            f"the stated temperatures ({_said(rollout)} against {_said(training)}) are a slope of {stated:.3g}, the "
            f"logprobs show {slope:.3g}: the data are believed"
        )


def _kept(observed: Observed, kinds: dict[str, Signature]) -> Iterator[str]:
    for name, side in (("rollout", observed.rollout), ("training", observed.training)):
        said = side.stated
        item = kinds.get("kept-mass")
        if item and item.evidence["renormalised_side"] == name and said.mode == "raw_logprobs":
            yield f"the {name} states raw logprobs and the data show renormalised ones: the data are believed"


def _dtype(floor: Floor) -> Iterator[str]:
    fits = next((name for name, usual in TYPICAL.items() if floor.measured <= ROOM * usual), "")
    if floor.bounded and floor.dtype in TYPICAL and fits and fits != floor.dtype:
        yield (
            f"the sides state {floor.dtype}, for which the drift is too wide; it would be usual in {fits}: the "
            "statement is believed, so check that it is true"
        )


def _effective(stated: Stated) -> float:
    """The temperature that the reported logprobs are at."""
    if stated.temperature is None or stated.temperature <= 0 or stated.mode == "raw_logprobs":
        return 1.0
    return stated.temperature


def _said(stated: Stated) -> str:
    mode = f", {stated.mode}" if stated.mode else ""
    return ("none" if stated.temperature is None else f"{stated.temperature:g}") + mode
