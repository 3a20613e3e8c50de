"""What a fix has to show, and what a gate pins: the failing case, the alignment, what must stay as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.analyzer.search.claim import Claim, Stopped
from xcfg.cli.documents import case_document
from xcfg.cli.gate.file import SCHEMA, is_gate
from xcfg.cli.search.costs import cost_document, priced
from xcfg.cli.search.document import aligned_values, outcome_fields
from xcfg.cli.search.log import read_log
from xcfg.cli.search.outcome import outcome_of
from xcfg.errors import InvalidInput
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.runner.durable import make_folders, write_json

if TYPE_CHECKING:
    from xcfg.cli.search.executor import Executor
    from xcfg.model.case import Case
    from xcfg.model.outcome import CaseOutcome, SideOutcome
    from xcfg.planner.alignment_space import Chosen


@frozen(kw_only=True)
class Pinned:
    """The cases of a claim that passes, by what each is for."""

    production: Case
    answer: Case
    reference: Case
    parts: tuple[Case, ...]
    unrelated: tuple[Case, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        """All of them, each once."""
        every = (self.production, self.answer, self.reference, *self.parts, *self.unrelated)
        return tuple({case.id: case for case in every}.values())


def unpinnable(claim: Claim, executor: Executor) -> str:
    """Why a claim gives nothing to pin; empty where it does."""
    if claim.aligned is None:
        return f"no alignment that passes is known: {claim.reason}"
    if claim.stopped is Stopped.NO_VERDICT:
        return claim.reason
    return "" if executor.space.production.id in executor.judged else "production was not executed"


def pinned(claim: Claim, executor: Executor) -> Pinned:
    """The executed cases a gate rests on. Raises InvalidInput where there is nothing to pin."""
    space = executor.space
    why = unpinnable(claim, executor)
    if claim.aligned is None or why:
        hint = "the report says which case to mend or execute next"
        raise InvalidInput(f"there is nothing to pin: {why}", where="gate", hint=hint)
    answer = frozenset(claim.aligned)
    parts, unrelated = [], []
    for item in executor.judged.values():
        chosen = space.chosen(item.case)
        if chosen and _within(item, executor) is not None:
            names = frozenset(chosen)
            if names < answer:
                parts.append(item.case)
            elif not names & answer or (names > answer and _same_values(claim.aligned, chosen)):
                unrelated.append(item.case)
    return Pinned(
        production=space.production,
        answer=space.case(claim.aligned),
        reference=space.case({choice.knob.name: choice.candidates[0] for choice in space.choices}),
        parts=tuple(parts),
        unrelated=tuple(case for case in unrelated if _one_more(case, answer, executor)),
    )


def gate_document(claim: Claim, executor: Executor) -> dict[str, Json]:
    """The gate: knobs aligned, differences left on, the cases that prove it with what each has to give."""
    found = pinned(claim, executor)
    space, aligned = executor.space, claim.aligned or {}
    left = {choice.knob.name: choice for choice in space.choices if choice.knob.name in claim.still_different}
    tried = {name for case in found.unrelated for name in (space.chosen(case) or {})} - set(aligned)
    log = read_log(executor.folder)
    prices = {item.case: item for item in priced(space, executor.judged, executor.contract)}
    return {
        "schema": SCHEMA,
        "experiment": space.experiment.name,
        "identity": unstructure(executor.report().identity),
        "fake": executor.fake,
        "level": claim.rung.level.value,
        "word": None if claim.word is None else claim.word.value,
        "assumption": claim.assumption,
        "aligned": unstructure(aligned),
        "values": aligned_values(aligned),
        "still_different": {
            name: {knob: space.judge.maker.values.get(knob) for knob in choice.candidates[0]}
            for name, choice in left.items()
        },
        "cases": {
            "production": _entry(found.production, executor),
            "answer": _entry(found.answer, executor),
            "reference": _entry(found.reference, executor),
            "parts": [_entry(case, executor) for case in found.parts],
            "unrelated": [_entry(case, executor) for case in found.unrelated],
        },
        "unrelated_not_executed": sorted(set(claim.still_different) - tried),
        "cost": {
            "engines_constructed": log.constructed,
            "engine_s": log.engine_s,
            "answer": cost_document(prices[found.answer.id]),
        },
        "provenance": {
            name: _provenance(executor.judged[case.id])
            for name, case in (("production", found.production), ("answer", found.answer))
        },
    }


def check_gate(path: Path) -> None:
    """Raise InvalidInput where no gate file could be written, before any engine is built for it."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        message = "a folder" if path.is_dir() else f"no folder {path.parent}"
        raise InvalidInput(message, where="--gate", hint="name a file in a folder that exists")
    if path.exists() and not is_gate(path):
        raise InvalidInput(f"{path} is there and holds no gate", where="--gate", hint="name another file")


def write_gate(path: Path, claim: Claim, executor: Executor) -> None:
    """Write the gate file. Raises InvalidInput where there is nothing to pin."""
    write_json(path, gate_document(claim, executor))


def write_evidence(folder: Path, claim: Claim, executor: Executor) -> None:
    """Write the bundle: ``evidence.json`` and the document of each case it names, under ``cases/``.

    Raises InvalidInput where there is nothing to pin or the folder holds something already.
    """
    content = gate_document(claim, executor)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput("there is something already", where=str(folder), hint="choose another --evidence")
    make_folders(folder / "cases")
    for case in pinned(claim, executor).cases:
        if case.id in executor.judged:
            write_json(folder / "cases" / f"{case.id}.json", case_document(executor.judged[case.id]))
    write_json(folder / "evidence.json", content)


def _entry(case: Case, executor: Executor) -> dict[str, Json]:
    """A case with what it has to give; ``within_baseline_row`` null where it was not executed."""
    chosen = executor.space.chosen(case) or {}
    entry: dict[str, Json] = {"id": case.id, "aligned": sorted(chosen), "sets": unstructure(chosen)}
    judged = executor.judged.get(case.id)
    if judged is None:
        return {**entry, "status": "not_executed", "within_baseline_row": None}
    return {**entry, **outcome_fields(outcome_of(judged, executor.contract))}


def _within(item: CaseOutcome, executor: Executor) -> bool | None:
    return outcome_of(item, executor.contract).within


def _same_values(answer: Chosen, chosen: Chosen) -> bool:
    return all(chosen[name] == sets for name, sets in answer.items())


def _one_more(case: Case, answer: frozenset[str], executor: Executor) -> bool:
    """Whether a case aligns one knob beside the answer, or one instead of it: those tell knobs apart."""
    return len(frozenset(executor.space.chosen(case) or {}) - answer) == 1


def _provenance(item: CaseOutcome) -> dict[str, Json]:
    return {"rollout": _side(item.rollout), "training": _side(item.training)}


def _side(side: SideOutcome) -> Mapping[str, Json]:
    """What a side was asked for and what was read back, by knob; the kernels that ran."""
    found = side.provenance
    if found is None:
        return {"knobs": {}, "operators": {}}
    return {"knobs": unstructure(found.knobs), "operators": unstructure(found.operators)}
