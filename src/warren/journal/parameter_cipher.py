"""Encrypts the addresses with passwords in the parameters that are written to the log.

Only the files have them encrypted: the state machine is given the same commands on every node, and each node
has a key of its own. What cannot be decrypted, because the key is another one, stays as it is in the file.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec.structs import replace

from warren.client.uri_password import masked_uri
from warren.metadata.commands import MetadataCommand, SetParameter
from warren.metadata.machine import Metadata
from warren.metadata.parameter_secrets import undecrypted_keys, with_uris
from warren.metadata.uri_check import ENCRYPTED_PREFIX


class Cipher(Protocol):
    """Port: authenticated encryption with the key of the node; equal data are encrypted equally."""

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt `data`."""

    def decrypt(self, data: bytes) -> bytes | None:
        """Decrypt `data`; None if they were encrypted with another key, or changed."""


def encrypted_command(command: MetadataCommand, cipher: Cipher | None) -> MetadataCommand:
    """`command` as it is written."""
    if not isinstance(command, SetParameter):
        return command

    def encrypted(uri: str) -> str:
        if cipher is None or masked_uri(uri) == uri:
            return uri
        return ENCRYPTED_PREFIX + b64encode(cipher.encrypt(uri.encode("utf-8", "surrogatepass"))).decode(
            "ascii"
        )

    return _with_uris(command, encrypted)


def decrypted_command(command: MetadataCommand, cipher: Cipher | None) -> MetadataCommand:
    """The command that was written as `command`."""
    if not isinstance(command, SetParameter):
        return command

    def decrypted(uri: str) -> str:
        if cipher is None or not uri.startswith(ENCRYPTED_PREFIX):
            return uri
        try:
            found = cipher.decrypt(b64decode(uri.removeprefix(ENCRYPTED_PREFIX), validate=True))
        except Base64Error:
            return uri
        return uri if found is None else found.decode("utf-8", "surrogatepass")

    return _with_uris(command, decrypted)


def undecrypted_parameters(metadata: Metadata) -> Iterator[str]:
    """Describe each parameter with addresses that could not be decrypted."""
    for vhost in metadata.vhosts.by_name.values():
        for (component, name), value in vhost.parameters.by_key.items():
            keys = undecrypted_keys(component, value)
            if keys:
                yield f"{component} '{name}' in vhost '{vhost.name}': {', '.join(keys)}"


def _with_uris(command: SetParameter, change: Callable[[str], str]) -> SetParameter:
    value = with_uris(command.component, command.value, lambda _key, uri: change(uri))
    return command if value is command.value else replace(command, value=value)
