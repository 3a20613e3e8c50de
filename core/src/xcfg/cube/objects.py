"""An object store by its URL: objects put once, documents replaced only by their successor, every write checked.

There is no rename, no lock and no fsync there: what is put is whole or absent, and the order of the writes says what is
complete.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import field, frozen

from xcfg.errors import EnvironmentFault, InvalidInput

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig
    from zarr.abc.store import Store

_EXAMPLE = "for example s3://BUCKET/PREFIX"
_DENIED = frozenset({"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"})
_RETRIES = 4
_RETRY_SECONDS = 60
_CONNECT_SECONDS = 10
_REQUEST_SECONDS = 600
"""A whole payload of a large attempt goes in one request: only so can it be put if absent."""


@frozen(kw_only=True)
class Found:
    """An object as the store lists it: bytes, and the entity tag (the MD5 of most objects on S3)."""

    size: int
    tag: str


def is_url(place: str) -> bool:
    """Whether a command's argument names an object store and no folder."""
    return "://" in place


@frozen(kw_only=True)
class Objects:
    """The objects below one URL. Every method raises EnvironmentFault where the store is not reached or refuses."""

    url: str
    store: ObjectStore = field(repr=False)

    def address(self, key: str) -> str:
        """The full URL of an object."""
        return f"{self.url.rstrip('/')}/{key}"

    def listed(self, prefix: str = "") -> dict[str, Found]:
        """Every object below ``prefix`` by its key."""
        import obstore

        with reaching(self.address(prefix)):
            found = [item for page in obstore.list(self.store, prefix or None) for item in page]
        return {item["path"]: Found(size=item["size"], tag=_tag(item.get("e_tag"))) for item in found}

    def read(self, key: str) -> bytes:
        """The content of an object."""
        import obstore

        with reaching(self.address(key)):
            return bytes(obstore.get(self.store, key).bytes())

    def holds(self, key: str, found: Found, data: bytes) -> bool:
        """Whether a listed object has this content: by size and tag, else by reading it back."""
        if found.size != len(data):
            return False
        same = found.tag == hashlib.md5(data, usedforsecurity=False).hexdigest()
        return same or hashlib.sha256(self.read(key)).digest() == hashlib.sha256(data).digest()

    def put_new(self, key: str, data: bytes) -> bool:
        """Put an object unless one is there, and check what arrived; False where the same content was there already.

        Raises InvalidInput where something else is there: it stays as it is.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with reaching(self.address(key)):
            try:
                result = obstore.put(self.store, key, data, mode="create")
            except AlreadyExistsError:
                result = None
        if result is None:
            if self.read(key) != data:
                raise self.other(key)
            return False
        self._check(key, _tag(result.get("e_tag")), data)
        return True

    def replace(self, key: str, former: Found, data: bytes) -> None:
        """Replace an object that is still the ``former`` one. Raises InvalidInput where it has changed since.

        A ``file:`` store cannot promise that and replaces it as it is.
        """
        import obstore
        from obstore.exceptions import PreconditionError

        with reaching(self.address(key)):
            try:
                result = obstore.put(self.store, key, data, mode={"e_tag": f'"{former.tag}"'})
            except PreconditionError as error:
                raise InvalidInput(
                    "another upload has changed this meanwhile",
                    where=self.address(key),
                    hint="one upload at a time; run it again when the other has ended",
                ) from error
            except NotImplementedError:
                result = obstore.put(self.store, key, data)
        self._check(key, _tag(result.get("e_tag")), data)

    def delete(self, keys: list[str]) -> None:
        """Remove objects."""
        import obstore

        if keys:
            with reaching(self.url):
                obstore.delete(self.store, keys)

    def zarr(self) -> Store:
        """The objects as a zarr store to read from."""
        from zarr.storage import ObjectStore

        return ObjectStore(self.store, read_only=True)

    def other(self, key: str) -> InvalidInput:
        """The error for a key under which other content lies."""
        return InvalidInput(
            "something else is here already and was left as it is",
            where=self.address(key),
            hint="upload to another URL, or merge both folders into one first: xcfg cube merge",
        )

    def _check(self, key: str, tag: str, data: bytes) -> None:
        if not self.holds(key, Found(size=len(data), tag=tag), data):
            raise EnvironmentFault("the store gives back other bytes than were put", where=self.address(key))


def connect(url: str, environment: Mapping[str, str]) -> Objects:
    """The store at ``url``: ``s3://bucket/prefix``, or another that obstore knows, such as ``file:///an/existing/folder``.

    obstore reads the usual AWS variables itself; ``environment`` is looked at for an ``AWS_ENDPOINT_URL`` that is plain
    HTTP. Raises EnvironmentFault without obstore, InvalidInput on a URL that names no store.
    """
    try:
        import obstore.exceptions
        from obstore.store import from_url
    except ImportError as error:
        hint = 'python -m pip install "xcfg[s3]"'
        raise EnvironmentFault("an object store needs obstore, which is not installed", where=url, hint=hint) from error
    if url.startswith("memory:"):
        raise InvalidInput("what is put into memory is gone when the command ends", where=url, hint=_EXAMPLE)
    plain = environment.get("AWS_ENDPOINT_URL", "").startswith("http://")
    client: ClientConfig = {
        "timeout": timedelta(seconds=_REQUEST_SECONDS),
        "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        "allow_http": plain,
    }
    retry: RetryConfig = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)}
    try:
        store = from_url(url, client_options=client, retry_config=retry)
    except (obstore.exceptions.BaseError, ValueError, TypeError) as error:
        raise InvalidInput(f"no object store: {_told(error)}", where=url, hint=_EXAMPLE) from error
    return Objects(url=url, store=store)


@contextmanager
def reaching(where: str) -> Iterator[None]:
    """Whatever a store answers but success is an :class:`EnvironmentFault` that says what to look at."""
    import obstore.exceptions as fault

    try:
        yield
    except (fault.BaseError, FileNotFoundError, PermissionError) as error:
        text, told = str(error), _told(error)
        if isinstance(error, fault.UnauthenticatedError | fault.PermissionDeniedError | PermissionError) or _DENIED & {
            *re.findall(r"\w+", text)
        }:
            message = f"access refused: {told}"
            hint = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the rights on the bucket"
        elif isinstance(error, fault.NotFoundError | FileNotFoundError) or "NoSuchBucket" in text:
            message = f"there is no such bucket or object: {told}"
            hint = "check the bucket's name, AWS_REGION and AWS_ENDPOINT_URL"
        else:
            message = f"the object store failed: {told}"
            hint = (
                "check AWS_ENDPOINT_URL, AWS_REGION and the network, then run it again: it goes on from what is there"
            )
        raise EnvironmentFault(message, where=where, hint=hint) from error


def _tag(text: str | None) -> str:
    return (text or "").strip('"')


def _told(error: Exception) -> str:
    """What the server said in its XML, else the first line of the error; the rest is of use to no one."""
    text = str(error)
    said = [
        found[1] for name in ("Code", "Message") if (found := re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL))
    ]
    return ": ".join(said) or (text.splitlines() or [type(error).__name__])[0][:400]
