"""Requests to a kernel backend and what was bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen
from attrs.converters import optional

from xcfg.model.ids import canonical
from xcfg.model.json import Json, freeze

SELECTED_LOGPROB = "selected_logprob"
"""The operator from logits and targets to selected-token logprobs."""

LOGP_BACKEND = "logp.backend"
"""The knob whose value is a backend id of :data:`SELECTED_LOGPROB`, for both sides."""

OPERATOR_OF_KNOB = {LOGP_BACKEND: SELECTED_LOGPROB}
"""Knobs whose value is the backend of an operator: applied by binding it, read back from what was bound."""


@frozen(kw_only=True)
class OperatorChoice:
    """A backend named for an operator on one side, with its options."""

    backend: str
    options: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class KernelBuild:
    """One prebuilt artifact of a backend.

    ``knobs`` are the build-time choices it was made with, knob to value. ``artifact`` names its file as
    ``package:path/inside/the/package``. ``fingerprint`` is the SHA-256 of the file in hex.
    """

    knobs: Mapping[str, Json] = field(converter=freeze)
    artifact: str
    fingerprint: str

    def fits(self, asked: Mapping[str, Json]) -> bool:
        """Whether it was made with every value asked for. A knob it does not name asks nothing of it, nor does None."""
        wanted = {name: value for name, value in asked.items() if value is not None and name in self.knobs}
        return all(canonical(self.knobs[name]) == canonical(value) for name, value in wanted.items())


def fitting_build(builds: Iterable[KernelBuild], asked: Mapping[str, Json]) -> KernelBuild | None:
    """The first build that fits what is asked for; None where none does."""
    return next((build for build in builds if build.fits(asked)), None)


@frozen(kw_only=True)
class KernelRequest:
    """What a side run asks of a backend: operator, device type, compute dtype, vocabulary size and options.

    ``vocab_size`` counts the columns that are part of the normaliser. ``sharding`` says how they lie on the ranks of a
    tensor-parallel group where the operator gets one rank's columns: ``bounds`` ([start, end) of every rank, in rank
    order), ``vocab_size``, ``padded_vocab_size``, ``tp_rank`` and ``tp_world``; None where it gets whole rows.
    ``artifact`` is the path of the build to load, its content checked; empty for a backend without builds.
    """

    operator: str
    device: str
    dtype: str
    vocab_size: int
    options: Mapping[str, Json] = field(factory=dict, converter=freeze)
    sharding: Mapping[str, Json] | None = field(default=None, converter=optional(freeze))
    artifact: str = ""


@frozen(kw_only=True)
class BoundKernel:
    """What really ran: the concrete implementation, its build, and whether a fallback was taken.

    ``build`` of a backend that comes in several builds is the SHA-256 of the artifact that is loaded.
    """

    backend: str
    concrete: str
    build: str = ""
    fallback: bool = False
