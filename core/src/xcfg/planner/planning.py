"""One planning: what is made of an experiment, and which of it is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import unstructure
from xcfg.model.experiment import Experiment, Mode
from xcfg.model.json import Json, tupled
from xcfg.planner.cases import CaseMaker, Judge, Made
from xcfg.planner.catalog import Catalog
from xcfg.planner.check_names import BASELINE
from xcfg.planner.dimensions import dimensions
from xcfg.planner.draft import Draft, baseline_draft, changed_draft, written_drafts
from xcfg.planner.expand import Expansion
from xcfg.planner.profile_cases import profile_cases
from xcfg.planner.profiles import find_profiles, find_slice
from xcfg.planner.select import Selection, parse_filters
from xcfg.planner.tokens import declared_tokens


@frozen(kw_only=True)
class Planning:
    """``expansion`` makes cases from the axes, None under profiles; ``named`` are drafts that users or profiles name.

    ``only`` are the names that are wanted, all where it is empty.
    """

    experiment: Experiment
    tokens: Json
    maker: CaseMaker
    selection: Selection
    expansion: Expansion | None
    named: tuple[Draft, ...] = field(converter=tupled)
    only: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, experiment: Experiment, root: Path, catalog: Catalog, mode: Mode | None, profiles: Sequence[str],
        slice_name: str, filters: Sequence[str], limit: int | None = None,
    ) -> Planning:  # fmt: skip
        """Look everything up; see :func:`xcfg.planner.build.build_plan`."""
        if profiles and mode is not None:
            raise InvalidInput("a profile has its own cases, in no mode", where="--mode", hint="leave --mode out")
        experiment = experiment if mode is None else evolve(experiment, mode=mode)
        selection = _selection(experiment, catalog, slice_name, filters)
        chosen = find_profiles(experiment, profiles, catalog)
        declared = declared_tokens(experiment.tokens, root, limit)
        tokens, maker = case_maker(experiment, root, catalog, declared)
        baseline = maker.baseline
        written = written_drafts(experiment, baseline)
        cases = profile_cases(Judge.of(maker), chosen) if chosen else None
        varied = [changed_draft(baseline, maker.changes(experiment.fixed)), *written]
        varied += [changed_draft(baseline, cases.aligned)] if cases is not None else []
        maker = evolve(maker, dimensions=dimensions(experiment, varied, baseline, maker.values))
        return cls(
            experiment=experiment,
            tokens=tokens,
            maker=maker,
            selection=selection,
            expansion=Expansion.of(experiment, maker, selection.filters) if cases is None else None,
            named=written if cases is None else cases.drafts,
            only=frozenset(draft.name for draft in cases.drafts) if cases is not None else frozenset(),
        )

    def check(self, max_cases: int) -> None:
        """Raise InvalidInput where the axes make more cases by far, before any is made."""
        if self.expansion is not None:
            self.expansion.check(max_cases)

    def made(self) -> Iterator[Made]:
        """Every case once, the baseline first; equal cases are one that goes by all their names."""
        judge = Judge.of(self.maker)
        waiting: dict[str, Made] = {}
        for draft in self.named:
            made = self.maker.make(draft)
            known = waiting.get(made.case.id)
            waiting[made.case.id] = made if known is None else known.named(draft.name)
        for made in self._unnamed(judge):
            other = waiting.pop(made.case.id, None)
            for name in other.names if other is not None else ():
                made = made.named(name)
            yield judge.judged(made)
        for made in waiting.values():
            yield judge.judged(made)

    def wants(self, made: Made) -> bool:
        """Whether the selection leaves this case."""
        if self.only and not self.only.intersection(made.names):
            return False
        return self.selection.accepts(made.values, made.names, made.case.name, made.case.changed)

    def _unnamed(self, judge: Judge) -> Iterator[Made]:
        yield self.maker.make(self.maker.baseline)
        for draft in self.expansion.drafts(judge) if self.expansion is not None else ():
            yield self.maker.make(draft)


def case_maker(
    experiment: Experiment, root: Path, catalog: Catalog, tokens: Json | None = None
) -> tuple[Json, CaseMaker]:
    """The declared tokens, read unless given, and the maker of an experiment's cases, which has no dimensions yet."""
    tokens = declared_tokens(experiment.tokens, root) if tokens is None else tokens
    contract = unstructure(catalog.contract(experiment.contract, root=root).ref)
    return tokens, CaseMaker.of(experiment, catalog, baseline_draft(experiment, BASELINE), tokens, contract)


def _selection(experiment: Experiment, catalog: Catalog, slice_name: str, filters: Sequence[str]) -> Selection:
    knobs = catalog.knobs()
    linked: Mapping[str, Sequence[str]] = {name: tuple(table) for name, table in experiment.linked.items()}
    return Selection(
        filters=parse_filters(filters, knobs),
        slice=find_slice(experiment, slice_name, catalog),
        knobs=knobs,
        linked=linked,
        fixed=frozenset(experiment.fixed),
    )
