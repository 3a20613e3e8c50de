"""Where one side's recorded logprobs lie: a file, or the files of a folder, with the reader that each suffix names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import ArtifactError, EnvironmentFault, InvalidInput
from xcfg.model.json import tupled
from xcfg.model.recorded import Row
from xcfg.plugin.protocols import FileReader

PICKLES = (".pkl", ".pickle")
ELSEWHERE = dict.fromkeys((".pt", ".pth"), "install xcfg-torch, which opens files of torch.save")
"""What to do about a suffix that another distribution of this project opens."""


@frozen(kw_only=True)
class Source:
    """``paths`` are files, or folders of which every file of a known suffix is read, by name and not recursively.

    ``readers`` maps a suffix (``.jsonl``, ``.jsonl.gz``) to the function that reads such files; the longest suffix that
    fits counts, in any case of letters.

    Raises InvalidInput: a path is missing, cannot be read, has no known suffix, or is a folder without such a file;
    ArtifactError for a pickle.
    """

    paths: tuple[Path, ...] = field(converter=tupled)
    readers: Mapping[str, FileReader]
    files: tuple[Path, ...] = field(init=False)

    @files.default
    def _files(self) -> tuple[Path, ...]:
        return tuple(file for path in self.paths for file in self._found(path))

    def rows(self) -> Iterator[Row]:
        """The rows of every file in turn.

        Raises ArtifactError where a file is not what its suffix says or holds no row, EnvironmentFault where the
        machine fails to read it.
        """
        for file in self.files:
            empty = True
            for row in self._read(file):
                empty = False
                yield row
            if empty:
                raise ArtifactError("the file holds no record", where=file.name)

    def first_fields(self) -> frozenset[str]:
        """The names in the first row, which tell whose layout it is; no other row is read."""
        return frozenset(next(self.rows()).fields)

    def _read(self, file: Path) -> Iterator[Row]:
        try:
            if not file.stat().st_size:
                raise ArtifactError("the file is empty", where=file.name)
            yield from self.readers[self._suffix(file)](file)
        except OSError as error:
            raise EnvironmentFault(f"cannot be read: {error.strerror or error}", where=str(file)) from error

    def _found(self, path: Path) -> list[Path]:
        hint = f"a file ends in one of {', '.join(sorted(self.readers))}"
        try:
            if path.is_dir():
                files = [item for item in sorted(path.iterdir()) if item.is_file() and self._suffix(item)]
            else:
                files = [path]
            for file in files:
                file.open("rb").close()
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error
        if not files:
            raise InvalidInput("the folder has no file of a known format", where=str(path), hint=hint)
        if not self._suffix(files[0]):
            if path.suffix.lower() in PICKLES:
                hint = "save the tensors with safetensors, or the records as JSONL or Parquet"
                raise ArtifactError(
                    "a pickle runs code when it is opened, and is never read", where=path.name, hint=hint
                )
            hint = ELSEWHERE.get(path.suffix.lower(), hint)
            raise InvalidInput(f"the suffix {path.suffix!r} is of no known format", where=str(path), hint=hint)
        return files

    def _suffix(self, file: Path) -> str:
        """The longest suffix that fits, empty where none does."""
        name = file.name.lower()
        return max((suffix for suffix in self.readers if name.endswith(suffix)), key=len, default="")
