"""What all engine groups of one execution share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from attrs import frozen

from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.plugin.executor import Executor
from xcfg.plugin.protocols import Prompt
from xcfg.runner.events import Event
from xcfg.runner.lookup import Lookup
from xcfg.runner.options import RunOptions
from xcfg.runner.store import Store


@frozen(kw_only=True)
class Context:
    """``root`` is the experiment's folder, ``checkpoints`` the digests by the paths it names, ``emit`` safe from any
    thread. ``stop`` ends every engine, be it for Ctrl-C or for ``fail_fast``.
    """

    store: Store
    registry: Lookup
    options: RunOptions
    root: str
    checkpoints: Mapping[str, CheckpointDigest]
    prompts: tuple[Prompt, ...]
    emit: Callable[[Event], None]
    stop: threading.Event
    executor: Executor
