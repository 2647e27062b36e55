"""Object stores: what a lake there is reached by, and what is said when it cannot be.

delta-rs reads and writes them, for plain Parquet as well, so that one set of options is enough: those of its
makers, from the environment as their tools read it, or given. They hold secrets: nothing here shows them.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

# What the variables of the environment begin with that belong to a store.
_PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "abfss": "AZURE_"}
SCHEMES = tuple(_PREFIXES)
# A store that does not answer is a failure after about a minute: for each request a time, and so many more.
_DEFAULTS = {"timeout": "30s", "connect_timeout": "5s", "max_retries": "3", "retry_timeout": "60s"}
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
_SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|KEY|SAS|CREDENTIAL", re.IGNORECASE)
# Of fewer characters it would be found everywhere.
_SECRET_SIZE_MIN = 4
# How errors of delta-rs are coloured and indented; and what an answer says beside its code.
_DECORATION = re.compile(
    r"\x1b\[[0-9;]*m|↳|<\?xml.*?\?>|<(RequestI[dD]|HostId|Resource)>.*?</\1>|\s+", re.DOTALL
)
_TAGS = re.compile(r"<[^>]*>")


class ObjectStoreError(OSError):
    """An object store did not do what it was asked; the text has no secrets."""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A place in an object store."""

    # Without a slash at its end.
    uri: str
    options: Mapping[str, str] = field(repr=False)

    def filesystem(self) -> Any:
        """The same as a file system of pyarrow, with paths below the place."""
        from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem

        with self.translated_errors():
            return PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))

    def names(self, folder: str = "") -> list[str]:
        """What is directly in `folder`: names of objects, and of what is like a folder."""
        from pyarrow.fs import FileSelector

        with self.translated_errors():
            selector = FileSelector(folder, allow_not_found=True)
            return sorted(one.base_name for one in self.filesystem().get_file_info(selector))

    def objects(self) -> list[str]:
        """The paths of all objects below the place."""
        from pyarrow.fs import FileSelector, FileType

        with self.translated_errors():
            found = self.filesystem().get_file_info(FileSelector("", recursive=True))
        return sorted(one.path for one in found if one.type == FileType.File)

    def has(self, path: str) -> bool:
        """Whether there is an object `path`."""
        from pyarrow.fs import FileType

        with self.translated_errors():
            return bool(self.filesystem().get_file_info(path).type == FileType.File)

    @contextlib.contextmanager
    def translated_errors(self) -> Iterator[None]:
        """What goes wrong within is a StoreError that says where, in one line and without secrets."""
        from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

        try:
            yield
        except (CommitFailedError, TableNotFoundError, ObjectStoreError, FileNotFoundError):
            raise
        except (OSError, DeltaError) as error:
            raise ObjectStoreError(f"the object store of {self.uri!r}: {self._masked(str(error))}") from None

    def _masked(self, text: str) -> str:
        text = _TAGS.sub(" ", _DECORATION.sub(" ", text))
        for name, value in self.options.items():
            if _SECRET.search(name) and len(value) >= _SECRET_SIZE_MIN:
                text = text.replace(value, "***")
        return " ".join(text.split())


def is_object_store(place: str | os.PathLike[str]) -> bool:
    """Whether `place` is in an object store, and not a folder."""
    return urlsplit(os.fspath(place)).scheme in _PREFIXES


def store_of(place: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> ObjectStore:
    """The store that `place` names, with `options` before those of the environment."""
    text = os.fspath(place)
    parts = urlsplit(text)
    if not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"a lake in an object store is {parts.scheme}://BUCKET/PATH, not {text!r}")
    prefix = _PREFIXES[parts.scheme]
    known = {name: value for name, value in os.environ.items() if name.startswith(prefix)}
    known |= {_named(name): value for name, value in (options or {}).items()}
    if parts.scheme == "s3":
        # A commit is an object that is put if it is not there.
        known.setdefault("AWS_CONDITIONAL_PUT", "etag")
        # Who names such an endpoint wants it.
        if any(known.get(name, "").startswith("http://") for name in _ENDPOINTS):
            known.setdefault("AWS_ALLOW_HTTP", "true")
    return ObjectStore(text.rstrip("/"), _DEFAULTS | known)


def _named(name: str) -> str:
    """The name of an option as it is in the environment, or in small letters if it is not there."""
    upper = name.upper()
    return upper if upper.startswith(tuple(_PREFIXES.values())) else name.lower()
