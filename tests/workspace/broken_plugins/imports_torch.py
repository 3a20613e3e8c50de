import torch

from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorers():
    summary = f"made with torch {torch.__version__}"
    return [ScorerDescriptor(id="imports_torch", summary=summary, target="json:JSONDecoder", roles=(Role.ROLLOUT,))]
