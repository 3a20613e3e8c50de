class Ended(BaseException):
    """Outside Exception, as pytest's outcomes and asyncio's cancellation are."""


raise Ended("no more")
