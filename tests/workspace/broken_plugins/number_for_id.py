from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorers():
    return [ScorerDescriptor(id=7, summary="a number sorts with no text", target="m:S", roles=(Role.ROLLOUT,))]
