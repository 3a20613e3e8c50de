from xcfg.plugin import hookimpl


@hookimpl
def xcfg_reject_case(case=None):
    return None
