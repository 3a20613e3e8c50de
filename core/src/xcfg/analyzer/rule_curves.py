"""Rules 3, 4 and 6: which curve moves first, and a reward that collapses although the engines agree."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from xcfg.analyzer.course import course
from xcfg.analyzer.curves import Curves
from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.health import collapse_step
from xcfg.analyzer.onset import PERSISTENCE, Movement, Onset, onset
from xcfg.analyzer.taxonomy import ALGORITHMIC, NONE, PLUMBING, UNRESOLVED
from xcfg.model.json import Json
from xcfg.model.result import Finding
from xcfg.model.status import Status

KL_FIRST = "kl_before_gradients"
GRADIENTS_FIRST = "gradients_before_kl"
CLEAN_COLLAPSE = "collapse_with_clean_alignment"

POLICY = ("kl", "ratio")
GRADIENTS = ("gradnorm", "update_norm")


@frozen(kw_only=True)
class Order:
    """One group of curves moved, ``first`` at ``step``, while every curve of the other was quiet.

    ``lead`` counts rows of the log from there to the last at which all of the others still were.
    """

    first: Onset
    step: int
    moved: tuple[Onset, ...]
    others: tuple[Onset, ...]
    lead: int

    @property
    def firm(self) -> bool:
        """Whether the lead is as long as the run of points that makes an onset; a shorter one may be noise."""
        return self.lead >= PERSISTENCE

    def evidence(self, curves: Curves) -> dict[str, Json]:
        """Both groups as plain JSON."""
        return {
            "first": self.first.name,
            "step": self.step,
            "lead": self.lead,
            "moved": {item.name: item.evidence(curves.headers.get(item.name, item.name)) for item in self.moved},
            "others": {item.name: item.evidence(curves.headers.get(item.name, item.name)) for item in self.others},
        }


def kl_before_gradients(evidence: Evidence) -> Finding | None:
    """Rule 3: KL or the ratio moves while gradient and update norm are quiet."""
    order = _order(evidence, POLICY, GRADIENTS)
    if order is None or evidence.curves is None:
        return None
    violated = evidence.comparison.status is Status.FAIL
    where = (
        "align the engines before tuning the algorithm"
        if violated
        else "the compared tokens agree, so look at what they do not cover: later weight updates, other ranks, the way "
        "logprobs reach the loss"
    )
    return Finding(
        source_class=UNRESOLVED,
        subclass=PLUMBING,
        rule=KL_FIRST,
        evidence={**order.evidence(evidence.curves), **evidence.numbers()},
        advice=f"{order.first.name} moves at step {order.step}, before gradient or update norm: likely "
        f"infrastructure or logprob plumbing; {where}" + evidence.caveat(),
        confidence=evidence.indicated(firm=order.firm and violated),
    )


def gradients_before_kl(evidence: Evidence) -> Finding | None:
    """Rule 4: gradient or update norm moves while KL and the ratio are quiet."""
    order = _order(evidence, GRADIENTS, POLICY)
    if order is None or evidence.curves is None:
        return None
    return Finding(
        source_class=NONE,
        subclass=ALGORITHMIC,
        rule=GRADIENTS_FIRST,
        evidence={**order.evidence(evidence.curves), **evidence.numbers()},
        advice=f"{order.first.name} moves at step {order.step}, before KL or the ratio: likelier algorithmic "
        "tuning (learning rate, clipping, batch, loss normalisation) than infrastructure" + evidence.caveat(),
        confidence=evidence.indicated(firm=order.firm),
    )


def collapse_with_clean_alignment(evidence: Evidence) -> Finding | None:
    """Rule 6: the reward rises, then collapses, and the comparison passes.

    The collapse is the reward's own fall, or the log's ``collapse`` flag at or after the reward's peak.
    """
    if evidence.comparison.status is not Status.PASS or evidence.curves is None:
        return None
    taken = course(evidence.curves.series("reward"))
    if taken is None or not taken.rises:
        return None
    flagged = collapse_step(evidence.curves)
    if not taken.rises_then_collapses and (flagged is None or flagged < taken.peak_step):
        return None
    return Finding(
        source_class=NONE,
        subclass=ALGORITHMIC,
        rule=CLEAN_COLLAPSE,
        evidence={
            "reward": taken.evidence(evidence.curves.headers.get("reward", "reward")),
            "collapse_flagged_at": flagged,
            **evidence.numbers(),
        },
        advice="the reward rises and collapses while the engines agree on the compared tokens: likelier the algorithm, "
        "the reward, the data or KL control than numerical drift" + evidence.caveat(),
        confidence=evidence.indicated(firm=taken.rises_then_collapses),
    )


def _order(evidence: Evidence, first: Sequence[str], then: Sequence[str]) -> Order | None:
    """The group ``first`` moved before the group ``then``; None where the log does not show it.

    Every curve of ``then`` that can be judged, at least one, has to be seen quiet at or after the onset: curves that
    move at the same step, or a curve logged too seldom, leave the order open.
    """
    if not evidence.comparison.status.judged or evidence.curves is None:
        return None
    leading, following = (tuple(onset(evidence.curves.series(name)) for name in group) for group in (first, then))
    moved = sorted(
        ((item.step, item) for item in leading if item.step is not None and item.movement is Movement.MOVED),
        key=lambda pair: pair[0],
    )
    quiet = [item.quiet_until for item in following if item.quiet_until is not None]
    if not moved or not quiet or moved[0][0] > min(quiet):
        return None
    step, earliest = moved[0]
    rows = evidence.curves.step
    return Order(
        first=earliest,
        step=step,
        moved=tuple(item for _, item in moved),
        others=tuple(item for item in following if item.quiet_until is not None),
        lead=int(((rows >= step) & (rows <= min(quiet))).sum()),
    )
