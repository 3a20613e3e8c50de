"""What an output folder has to be bound to for a plan, and whether it is."""

from __future__ import annotations

from pathlib import Path

from xcfg.model.case import SideConfig
from xcfg.model.plan import Plan
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.bases import with_bases
from xcfg.runner.binding import Binding, check
from xcfg.runner.checkpoints import digest_all
from xcfg.runner.lookup import Lookup
from xcfg.runner.schedule import baseline_configs, side_configs
from xcfg.runner.store import Store


def check_belongs(plan: Plan, registry: Lookup, out: Path) -> dict[str, CheckpointDigest]:
    """The digests of the plan's checkpoints by path, as they are now; nothing is written.

    Raises InvalidInput where ``out`` belongs to another experiment or holds no run of ours, or where a checkpoint is
    unreadable, and ArtifactError where the folder is damaged.
    """
    store = Store(out.absolute())
    checkpoints = checkpoints_of(plan, (*side_configs(plan), *baseline_configs(plan)), store)
    check(store, binding_of(plan, registry, checkpoints))
    return checkpoints


def checkpoints_of(plan: Plan, configs: tuple[SideConfig, ...], store: Store) -> dict[str, CheckpointDigest]:
    """The digests of all checkpoints of the plan and of ``configs``."""
    used = [plan.experiment.checkpoint, *(config.checkpoint for config in configs)]
    paths = [path for item in used for path in (item.path, item.derived_from) if path]
    return with_bases(plan.root, digest_all(plan.root, paths, store.checkpoints), used)


def binding_of(plan: Plan, registry: Lookup, checkpoints: dict[str, CheckpointDigest]) -> Binding:
    """What the numbers of the plan have in common."""
    checkpoint = checkpoints[plan.experiment.checkpoint.path]
    samples = plan.experiment.tokens.sample is not None
    return Binding(
        checkpoint=checkpoint.weights,
        tokenizer=checkpoint.tokenizer,
        tokens=plan.tokens,
        sampler=plan.case(plan.baseline).rollout.digest() if samples else "",
        contract=registry.contract(plan.experiment.contract, root=Path(plan.root)).ref,
    )
