from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorer():
    return []
