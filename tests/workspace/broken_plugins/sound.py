from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_knobs():
    return [
        Knob(
            name=f"sound.{name}",
            summary="a knob",
            source_class=SourceClass.EXECUTION,
            lifecycle=Lifecycle.REQUEST,
            targets=Target.ROLLOUT,
            domain=Domain(kind=Kind.INT),
            default=1,
        )
        for name in ("one", "two")
    ]


@hookimpl
def xcfg_scorers():
    return [ScorerDescriptor(id="sound", summary="a scorer", target="module:Scorer", roles=(Role.ROLLOUT,))]


@hookimpl
def xcfg_reject_case(case):
    return None
