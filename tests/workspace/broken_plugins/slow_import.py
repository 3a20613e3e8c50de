import time

from xcfg.plugin import hookimpl

time.sleep(0.3)


@hookimpl
def xcfg_scorers():
    time.sleep(0.2)
    return []
