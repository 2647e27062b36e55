"""Addresses with passwords are encrypted in the log, and nothing else."""

import pytest
from tests.unit.journal.test_snapshot import OneFile

from warren.journal.codec import VoteState, decode_command, encode_command
from warren.journal.recovery import recover
from warren.journal.snapshot import JournalSnapshot, SnapshotOrigin, SnapshotPlace
from warren.metadata.commands import CommandContext, Json, MetadataCommand, PutVhost, SetParameter
from warren.metadata.machine import Metadata
from warren.replication.raft.change import Configuration
from warren.runtime.secret_key import KEY_SIZE, SecretKey

KEY, OTHER = (SecretKey(bytes([number]) * KEY_SIZE) for number in (1, 2))
URI = "amqp://u:secret@h"


def upstream(uri: Json) -> SetParameter:
    return SetParameter(vhost="v", component="federation-upstream", name="n", value={"uri": uri}, user="u")


@pytest.mark.parametrize("uri", [URI, [URI, "amqp://plain"], "amqp://u:sécret\ud800@h"])
def test_an_address_with_a_password_is_encrypted_and_decrypted(uri: Json) -> None:
    data = encode_command(upstream(uri), KEY)
    assert b"cret" not in data
    assert (b"plain" in data) == isinstance(uri, list)
    assert decode_command(data, KEY) == upstream(uri)
    assert encode_command(upstream(uri), KEY) == data


@pytest.mark.parametrize(
    "command",
    [
        upstream("amqp://h"),
        upstream(5),
        upstream("encrypted:?"),
        SetParameter(vhost="v", component="federation-upstream-set", name="n", value=[{"upstream": "a"}]),
        PutVhost(name=URI),
    ],
)
def test_nothing_else_is_encrypted(command: MetadataCommand) -> None:
    assert encode_command(command, KEY) == encode_command(command)
    assert decode_command(encode_command(command, KEY), KEY) == command


def test_without_the_key_an_address_stays_encrypted_and_can_be_written_again() -> None:
    data = encode_command(upstream(URI), KEY)
    for cipher in (None, OTHER):
        found = decode_command(data, cipher)
        assert found != upstream(URI)
        assert encode_command(found, cipher) == data


def test_a_log_from_before_encryption_is_read() -> None:
    assert decode_command(encode_command(upstream(URI)), KEY) == upstream(URI)


def test_a_snapshot_has_encrypted_addresses() -> None:
    metadata, again = Metadata(), Metadata()
    for index, command in enumerate((PutVhost(name="v"), upstream(URI)), 1):
        metadata.apply(command, CommandContext(index=index, now=0))
    place = SnapshotPlace(index=2, term=1, hard=VoteState(1, 1), configuration=Configuration((1,)))
    snapshot = JournalSnapshot(metadata, place, SnapshotOrigin(bytes(8), 1, bytes(8)), cipher=KEY)
    data = b"".join(snapshot)
    assert data == b"".join(snapshot)
    assert b"secret" not in data
    assert recover(OneFile(data), again, KEY).damage == []
    vhost = again.vhost("v")
    assert vhost is not None
    assert vhost.parameters.by_key["federation-upstream", "n"] == {"uri": URI}
