from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorers():
    return [ScorerDescriptor(id=["a"], summary="a list is no key", target="m:S", roles=(Role.ROLLOUT,))]
