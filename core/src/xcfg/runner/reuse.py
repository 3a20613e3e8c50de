"""Whether an output folder already holds what an engine would give."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from xcfg.model.case import SideConfig
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.acceptance import objection
from xcfg.runner.artifacts import Newest, newest
from xcfg.runner.lookup import Lookup
from xcfg.runner.store import Store, side_id


@frozen(kw_only=True)
class Stored:
    """The newest attempt of a side run, if one ended, and why it is refused; empty where it is not.

    One that failed is neither refused nor does it serve: the side runs again.
    """

    side_id: str
    newest: Newest | None = None
    objection: str = ""

    @property
    def serves(self) -> bool:
        """Whether the attempt is taken in the place of a new one."""
        return self.newest is not None and self.newest.failure is None and not self.objection


@frozen(kw_only=True)
class Shelf:
    """What is needed to look side runs up: the folder, the frozen tokens' digest, checkpoints, repeats asked for."""

    store: Store
    registry: Lookup
    token_digest: str
    checkpoints: Mapping[str, CheckpointDigest]
    repeat: int

    def find(self, config: SideConfig) -> Stored:
        """What the folder holds of a side run; nothing is written."""
        side = side_id(config, self.token_digest, self.checkpoints[config.checkpoint.path])
        found = newest(self.store, side)
        if found is None or found.failure is not None:
            return Stored(side_id=side, newest=found)
        return Stored(side_id=side, newest=found, objection=objection(config, found, self.registry, self.repeat))
