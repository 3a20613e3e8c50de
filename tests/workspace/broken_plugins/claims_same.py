from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorers():
    return [ScorerDescriptor(id="same", summary="of two distributions", target="module:Scorer", roles=(Role.ROLLOUT,))]
