"""Names of a few choices, read from text."""

from __future__ import annotations

from enum import StrEnum
from typing import NoReturn

from xcfg.errors import InvalidInput


class Choice(StrEnum):
    """Base of the choices: called with a name it gives the member, and refuses a name that is none."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise InvalidInput(f"{value!r} is none of {', '.join(cls)}", where=cls.__name__)
