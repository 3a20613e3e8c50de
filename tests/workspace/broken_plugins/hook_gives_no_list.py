from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorers():
    return {"mine": "module:Scorer"}
