"""What the launches of a running execution are doing, read from the files their ranks leave."""

from __future__ import annotations

from pathlib import Path

from attrs import Factory, define, frozen

from xcfg.errors import InvalidInput
from xcfg.model.scorer import Role
from xcfg.runner.exits import NAME as EXIT
from xcfg.runner.launch import LaunchSpec, read_spec
from xcfg.runner.launching import SPEC
from xcfg.runner.staging import phase
from xcfg.runner.store import Store


@frozen(kw_only=True)
class Current:
    """One launch, with ``ended`` of its ``sides`` side runs behind it; ``phase`` is empty before a rank has begun."""

    launch: str
    role: Role
    scorer: str
    phase: str
    ended: int
    sides: int


@define
class Watch:
    """Looks at the launches of ``store`` that are made after the watch itself."""

    store: Store
    _former: set[str] = Factory(lambda self: set(_names(self.store)), takes_self=True)
    _specs: dict[str, LaunchSpec] = Factory(dict)

    def look(self) -> tuple[Current, ...]:
        """Every launch that has begun and not ended, in their order."""
        found = [self._current(name) for name in _names(self.store) if name not in self._former]
        return tuple(item for item in found if item is not None)

    def _current(self, name: str) -> Current | None:
        launch = self.store.launch(name)
        if (launch / EXIT).exists():
            self._former.add(name)
            return None
        try:
            spec = self._specs.setdefault(name, read_spec(launch / SPEC))
        except (FileNotFoundError, InvalidInput):  # it is only now being laid out
            return None
        return Current(
            launch=name,
            role=spec.role,
            scorer=spec.scorer,
            phase=phase(Path(spec.folder), spec.world_size),
            ended=sum(not Path(step.folder).exists() for step in spec.steps),
            sides=len(spec.steps),
        )


def _names(store: Store) -> list[str]:
    folder = store.root / "launches"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
