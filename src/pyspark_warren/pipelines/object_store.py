"""Object stores: options, access and errors of a lake in an object store.

delta-rs reads and writes object stores, for plain Parquet as well, so that one set of options is enough. They
come from the environment, as the tools of the providers read it, or from the caller. They contain secrets,
which are masked in errors.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

# Prefixes of the environment variables for each scheme.
_PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "abfss": "AZURE_"}
SCHEMES = tuple(_PREFIXES)
# A request to a store that does not answer fails after about a minute, retries included.
_DEFAULTS = {"timeout": "30s", "connect_timeout": "5s", "max_retries": "3", "retry_timeout": "60s"}
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
_SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|KEY|SAS|CREDENTIAL", re.IGNORECASE)
# A shorter secret would mask parts of other words.
_SECRET_SIZE_MIN = 4
# Colors and indentation in errors of delta-rs, and parts of XML answers that are not needed.
_DECORATION = re.compile(
    r"\x1b\[[0-9;]*m|↳|<\?xml.*?\?>|<(RequestI[dD]|HostId|Resource)>.*?</\1>|\s+", re.DOTALL
)
_TAGS = re.compile(r"<[^>]*>")


class ObjectStoreError(OSError):
    """A request to an object store failed; the text has no secrets."""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A location in an object store, with the options to access it."""

    # Without a trailing slash.
    uri: str
    options: Mapping[str, str] = field(repr=False)

    def filesystem(self) -> Any:
        """Return a file system of pyarrow with paths relative to this location."""
        from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem

        with self.translated_errors():
            return PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))

    def names(self, folder: str = "") -> list[str]:
        """Return the names of objects and common prefixes directly in `folder`, sorted."""
        from pyarrow.fs import FileSelector

        with self.translated_errors():
            selector = FileSelector(folder, allow_not_found=True)
            return sorted(one.base_name for one in self.filesystem().get_file_info(selector))

    def objects(self) -> list[str]:
        """Return the paths of all objects below this location, sorted."""
        from pyarrow.fs import FileSelector, FileType

        with self.translated_errors():
            found = self.filesystem().get_file_info(FileSelector("", recursive=True))
        return sorted(one.path for one in found if one.type == FileType.File)

    def has(self, path: str) -> bool:
        """Whether the object `path` exists."""
        from pyarrow.fs import FileType

        with self.translated_errors():
            return bool(self.filesystem().get_file_info(path).type == FileType.File)

    @contextlib.contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Convert errors in the block to ObjectStoreError, with the location and without secrets."""
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
    """Whether `place` is a URI of an object store."""
    return urlsplit(os.fspath(place)).scheme in _PREFIXES


def store_of(place: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> ObjectStore:
    """Return the location `place`; `options` override those of the environment. Raises ValueError."""
    text = os.fspath(place)
    parts = urlsplit(text)
    if not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"a lake in an object store must be {parts.scheme}://BUCKET/PATH, not {text!r}")
    prefix = _PREFIXES[parts.scheme]
    known = {name: value for name, value in os.environ.items() if name.startswith(prefix)}
    known |= {_named(name): value for name, value in (options or {}).items()}
    if parts.scheme == "s3":
        # A commit is a conditional put.
        known.setdefault("AWS_CONDITIONAL_PUT", "etag")
        # delta-rs refuses an endpoint without TLS unless this is set.
        if any(known.get(name, "").startswith("http://") for name in _ENDPOINTS):
            known.setdefault("AWS_ALLOW_HTTP", "true")
    return ObjectStore(text.rstrip("/"), _DEFAULTS | known)


def _named(name: str) -> str:
    """Return the name of an option as in the environment, or in lower case if it is not one of these."""
    upper = name.upper()
    return upper if upper.startswith(tuple(_PREFIXES.values())) else name.lower()
