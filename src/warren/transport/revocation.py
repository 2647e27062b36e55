"""Lists of revoked certificates (RFC 5280 §5), which a TLS context gets from the files of directories.

A list is PEM or DER, under any name. A certificate whose issuer has no current list is refused.
"""

import re
import ssl
from base64 import encodebytes
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from tempfile import NamedTemporaryFile

from warren.limits_access import REVOCATION_LIST_SIZE_MAX

_BEGIN, _END = b"-----BEGIN X509 CRL-----\n", b"-----END X509 CRL-----\n"
_LIST = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)
# The tag of a sequence, with which a list in DER begins.
_SEQUENCE = b"\x30"
_FLAGS = ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF, ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN


class RevocationCheck(Enum):
    """The certificates of a client that are looked for in the lists; the values are RabbitMQ's names."""

    NONE = "false"
    PEER = "peer"
    CHAIN = "true"
    BEST_EFFORT = "best_effort"


def revocation_files(directories: Iterable[str]) -> list[str]:
    """Return the names of the files in `directories`, in order; OSError if one cannot be read."""
    return sorted(
        str(path) for directory in directories for path in Path(directory).iterdir() if path.is_file()
    )


def revocation_lists(directories: Iterable[str]) -> list[bytes]:
    """Return the lists (PEM) in the files in `directories`; OSError if one cannot be read."""
    return [found for name in revocation_files(directories) for found in _lists(name)]


def check_revocation(context: ssl.SSLContext, lists: Sequence[bytes], check: RevocationCheck) -> None:
    """Have `context` refuse certificates that `lists` (PEM) contain, and those whose issuer has none.

    OSError, of which SSLError is one, if a list is not usable.
    """
    leaf, chain = _FLAGS
    context.verify_flags |= chain if check is RevocationCheck.CHAIN else leaf
    if not lists:
        return
    # OpenSSL reads lists from a file only; one of its own has no certificates that would be trusted then.
    with NamedTemporaryFile(suffix=".pem") as file:
        file.write(b"".join(lists))
        file.flush()
        context.load_verify_locations(file.name)


def _lists(name: str) -> list[bytes]:
    path = Path(name)
    if path.stat().st_size > REVOCATION_LIST_SIZE_MAX:
        raise OSError(f"{name!r} has more than {REVOCATION_LIST_SIZE_MAX} bytes")
    data = path.read_bytes()
    if data.startswith(_SEQUENCE):
        return [_BEGIN + encodebytes(data) + _END]
    return [found[0] + b"\n" for found in _LIST.finditer(data)]
