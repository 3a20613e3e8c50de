from xcfg.plugin import hookimpl


class Ended(BaseException):
    pass


@hookimpl
def xcfg_scorers():
    raise Ended("no more")
