from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorers():
    return [
        ScorerDescriptor(
            id="needs-an-engine",
            summary="an engine that is nowhere",
            target="nowhere:Scorer",
            roles=(Role.TRAINING,),
            requires=("engine_that_is_nowhere",),
            install="pip install 'xcfg-needs-an-engine[cpu]'",
            fake=True,
        )
    ]
