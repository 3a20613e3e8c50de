"""What a diagnosis says: signatures with their evidence, best first."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled


@frozen(kw_only=True)
class Signature:
    """A kind of fault that the numbers look like.

    ``source_class`` is one of the source taxonomy, or ``unresolved`` or ``none``. ``confidence`` is ``high``,
    ``medium`` or ``low``. ``explained`` in [0, 1] is the share of the summed abs(d) above the noise floor, at the
    tokens that were left when it was named, that goes away when the fault is taken out.
    """

    kind: str
    source_class: str
    subclass: str
    confidence: str
    explained: float
    evidence: Mapping[str, Json] = field(factory=dict, converter=freeze)
    advice: str = ""


@frozen(kw_only=True)
class Diagnosis:
    """Signatures, best first and never none: ``floor`` or ``unknown`` where no fault fits.

    ``tokens`` were looked at. ``too_few`` says why nothing is concluded, empty where something is. ``floor`` holds
    the noise floor in numbers; ``notes`` say where metadata and data disagree, and which of them was believed.
    """

    signatures: tuple[Signature, ...] = field(converter=tupled)
    tokens: int
    too_few: str = ""
    floor: Mapping[str, Json] = field(factory=dict, converter=freeze)
    notes: tuple[str, ...] = field(default=(), converter=tupled)
