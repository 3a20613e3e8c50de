from xcfg.model.knob import Domain, Kind, Knob, SourceClass, Target
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_knobs():
    return [
        Knob(
            name="text_for_lifecycle.size",
            summary="a text is no member",
            source_class=SourceClass.EXECUTION,
            lifecycle="request",
            targets=Target.ROLLOUT,
            domain=Domain(kind=Kind.INT),
            default=1,
        )
    ]
