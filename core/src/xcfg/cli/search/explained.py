"""What the executed cases of a folder prove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.analyzer.search.problem import Options, Word
from xcfg.cli.search.case_curves import CaseCurves
from xcfg.cli.search.document import answer_document
from xcfg.cli.search.findings import case_findings, findings
from xcfg.cli.search.looking import review
from xcfg.cli.search.setting import Setting
from xcfg.cli.stored import load_judged
from xcfg.model.json import Json
from xcfg.runner.options import RunOptions

if TYPE_CHECKING:
    from xcfg.analyzer.search.claim import Claim
    from xcfg.cli.search.executor import Executor
    from xcfg.plugin.registry import Registry


def explained(folder: Path, registry: Registry, read: CaseCurves) -> tuple[dict[str, Json], Claim, Executor]:
    """The document of ``explain``, the claim in it, and what the claim was read from; nothing is executed."""
    setting = Setting.stored(folder, registry)
    executor = setting.executor(RunOptions(), lambda event: None)
    looked = review(setting.problem, Options(prove=Word.MINIMUM, keeps_engines=False), setting.known, executor)
    following = looked.following
    of_cases = case_findings(load_judged(folder, registry)[2], read) if read.cases else ()
    content = answer_document(
        "explain",
        folder,
        looked.claim,
        executor,
        (*findings(setting.space, executor.judged, setting.contract, read), *of_cases),
        next=None
        if following is None
        else {
            "case": setting.space.case(following.aligned).id,
            "aligned": sorted(following.aligned),
            "purpose": following.purpose.value,
            "constructions": following.constructions,
        },
    )
    return content, looked.claim, executor
