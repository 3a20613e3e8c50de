"""Token ids as text, with the tokenizer of a checkpoint."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.errors import EnvironmentFault, InvalidInput


@frozen
class TokenText:
    """The tokenizer of a folder (``tokenizer.json``)."""

    _tokenizer: Any

    @classmethod
    def load(cls, folder: Path) -> TokenText:
        """Read ``tokenizer.json`` of a folder, or the file itself.

        Raises InvalidInput where it is missing or broken, EnvironmentFault where the library is not installed.
        """
        if find_spec("tokenizers") is None:
            hint = 'python -m pip install "xcfg[tokenizer]"'
            raise EnvironmentFault("tokenizers is not installed", where="--tokenizer", hint=hint)
        from tokenizers import Tokenizer

        path = folder / "tokenizer.json" if folder.is_dir() else folder
        if not path.is_file():
            raise InvalidInput("there is no tokenizer.json", where=str(folder), hint="name the checkpoint's folder")
        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception for a file it cannot parse
            raise InvalidInput(f"not a tokenizer: {error}", where=str(path)) from error

    def of(self, token: int) -> str:
        """The text of one token; of an id outside the vocabulary, empty."""
        try:
            found: str = self._tokenizer.decode([token], skip_special_tokens=False)
        except OverflowError:  # beyond what the library takes for an id
            return ""
        return found
