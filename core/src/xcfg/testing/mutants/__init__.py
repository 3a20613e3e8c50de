"""Wrong wrappers round correct objects. The kit is only worth something if it fails every one of them."""

from __future__ import annotations

from xcfg.testing.mutants.backends import BACKEND_MUTANTS
from xcfg.testing.mutants.executors import EXECUTOR_MUTANTS
from xcfg.testing.mutants.importers import IMPORTER_MUTANTS
from xcfg.testing.mutants.materializers import MATERIALIZER_MUTANTS
from xcfg.testing.mutants.scorers import SCORER_MUTANTS, MaskIgnored, OffByOne

__all__ = [
    "BACKEND_MUTANTS",
    "EXECUTOR_MUTANTS",
    "IMPORTER_MUTANTS",
    "MATERIALIZER_MUTANTS",
    "SCORER_MUTANTS",
    "MaskIgnored",
    "OffByOne",
]
