"""Who owns which id, which ids cannot be used, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from attrs import field, frozen

from xcfg.model.codec import unknown
from xcfg.model.json import freeze
from xcfg.model.knob import CORE_PREFIXES, Knob
from xcfg.model.scorer import MaterializerDescriptor
from xcfg.plugin.contribution import Contribution, Descriptor, Key, describe_key, materializer_key
from xcfg.plugin.inventory import PluginState
from xcfg.plugin.manager import LoadedPlugin


@frozen
class Owned:
    """A descriptor and the distribution that registered it."""

    value: Descriptor
    distribution: str


@frozen(kw_only=True)
class Index:
    """``owned`` by key; ``broken`` holds the reason for each id that must not be used; ``failures`` by distribution.

    ``clashes`` are the distributions that registered one id.
    """

    owned: Mapping[Key, Owned]
    broken: Mapping[Key, str]
    clashes: Mapping[Key, tuple[str, ...]]
    failures: Mapping[str, str] = field(converter=freeze)


def build_index(loaded: Sequence[LoadedPlugin]) -> Index:
    """Sort the descriptors of all plugins into owned and broken ones.

    An id that a plugin named before it failed stays with the sound one that has it: how far a broken plugin got
    decides nothing about another.
    """
    broken: dict[Key, str] = {}
    failures: dict[str, list[str]] = defaultdict(list)
    sound: list[Contribution] = []
    for plugin in loaded:
        if plugin.info.error:
            failures[plugin.info.distribution].append(plugin.info.error)
        if plugin.info.state is PluginState.LOADED:
            sound.append(plugin.contribution)
        else:
            reason = f"{plugin.info.distribution}: {plugin.info.error}"
            broken |= dict.fromkeys((key for key, _ in plugin.contribution.items()), reason)
    owned: dict[Key, Owned] = {}
    clashes: dict[Key, tuple[str, ...]] = {}
    for key, claims in _claims(sound).items():
        broken.pop(key, None)
        if len(claims) == 1:
            owned[key] = claims[0]
            continue
        clashes[key] = tuple(sorted({claim.distribution for claim in claims}))
        broken[key] = f"{describe_key(key)} is registered by {' and '.join(clashes[key])}"
        for name in clashes[key]:
            failures[name].append(broken[key])
    for key, distribution, fault in _materializer_faults(owned, sound):
        broken[key] = f"{distribution}: {fault}"
        failures[distribution].append(fault)
        del owned[key]
    return Index(
        owned=MappingProxyType(owned),
        broken=MappingProxyType(broken),
        clashes=MappingProxyType(clashes),
        failures={name: "; ".join(texts) for name, texts in failures.items()},
    )


def _claims(contributions: Iterable[Contribution]) -> dict[Key, list[Owned]]:
    claims: dict[Key, list[Owned]] = defaultdict(list)
    for contribution in contributions:
        for key, value in contribution.items():
            claims[key].append(Owned(value, contribution.distribution))
    return claims


def _materializer_faults(owned: Mapping[Key, Owned], sound: Sequence[Contribution]) -> Iterator[tuple[Key, str, str]]:
    """Materializers of knobs that should exist and do not, or of values outside the knob's domain.

    A knob of another plugin may be absent with that plugin; its materializer then waits unused.
    """
    names = sorted(name for kind, name in owned if kind == "knob")
    for contribution in sound:
        expected = (*CORE_PREFIXES, contribution.plugin, contribution.plugin.replace("-", "_"))
        for item in contribution.materializers:
            key = materializer_key(item.knob, item.scorer)
            if key not in owned:
                continue
            knob = owned.get(("knob", item.knob))
            if knob is not None and isinstance(knob.value, Knob):
                if fault := _value_fault(item, knob.value):
                    yield key, contribution.distribution, fault
            elif item.knob.partition(".")[0] in expected:
                fault = f"materializer for scorer {item.scorer!r}: {unknown('knob', item.knob, names)}"
                yield key, contribution.distribution, fault


def _value_fault(item: MaterializerDescriptor, knob: Knob) -> str:
    for value in item.values:
        try:
            normal = knob.domain.normalise(value)
        except ValueError as error:
            return f"materializer of {item.knob!r} for scorer {item.scorer!r}: {error}"
        if normal != value:
            return f"materializer of {item.knob!r} for scorer {item.scorer!r}: {value!r} is normally {normal!r}"
    return ""
