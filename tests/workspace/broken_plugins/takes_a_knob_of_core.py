from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_knobs():
    return [
        Knob(
            name="rollout.dtype",
            summary="core's own",
            source_class=SourceClass.EXECUTION,
            lifecycle=Lifecycle.REQUEST,
            targets=Target.ROLLOUT,
            domain=Domain(kind=Kind.INT),
            default=1,
        )
    ]
