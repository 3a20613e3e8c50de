from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_knobs():
    return [
        Knob(
            name="object_for_summary.size",
            summary=object,
            source_class=SourceClass.EXECUTION,
            lifecycle=Lifecycle.REQUEST,
            targets=Target.ROLLOUT,
            domain=Domain(kind=Kind.INT, minimum=float("nan")),
            default=1,
        )
    ]
