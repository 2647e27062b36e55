"""An import is tried on metadata of its own before anything of it is applied."""

from warren.metadata.commands import (
    DeclareQueue,
    Json,
    MetadataCommand,
    Outcome,
    PutVhost,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetVhostLimits,
)
from warren.metadata.import_rehearsal import ImportRehearsal
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals

URI = "amqp://user:secret@elsewhere"
SHOVEL: dict[str, Json] = {"src-uri": URI, "src-queue": "a", "dest-uri": URI, "dest-queue": "b"}
HIDDEN = "amqp://user:***@elsewhere"


def existing() -> Metadata:
    """Metadata with a virtual host, and a shovel in it."""
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    local.apply(PutVhost(name="v"))
    local.apply(SetParameter(vhost="v", component="shovel", name="s", value=SHOVEL, user="alice"))
    return metadata


def outcome(*commands: MetadataCommand) -> Outcome:
    """What becomes of the last of `commands`."""
    rehearsal = ImportRehearsal(existing())
    return [rehearsal.apply(command).outcome for command in commands][-1]


def policy(vhost: str, definition: Json) -> SetPolicy:
    return SetPolicy(vhost=vhost, name="p", pattern=".*", definition=definition)


def permissions(user: str) -> SetPermissions:
    return SetPermissions(user=user, vhost="v", configure=".*", write=".*", read=".*")


def test_what_would_be_refused_is_refused() -> None:
    assert outcome(policy("v", {"max-length": "many"})) is Outcome.REFUSED
    assert outcome(SetParameter(vhost="v", component="shovel", name="n", value={})) is Outcome.REFUSED
    assert outcome(permissions("nobody")) is Outcome.MISSING
    assert outcome(SetVhostLimits(vhost="gone", limits={})) is Outcome.MISSING
    queue = DeclareQueue(vhost="gone", name="q", durable=True)
    assert outcome(queue) is Outcome.MISSING


def test_what_the_document_makes_before_is_there() -> None:
    assert outcome(policy("w", {"max-length": 1})) is Outcome.MISSING
    assert outcome(PutVhost(name="w"), policy("w", {"max-length": 1})) is Outcome.DONE


def test_a_hidden_password_stands_for_the_stored_one() -> None:
    hidden = {**SHOVEL, "src-uri": HIDDEN, "dest-uri": HIDDEN}

    def set_by(user: str, name: str) -> Outcome:
        return outcome(SetParameter(vhost="v", component="shovel", name=name, value=hidden, user=user))

    assert set_by("alice", "s") is Outcome.DONE
    assert set_by("mallory", "s") is Outcome.REFUSED
    assert set_by("alice", "t") is Outcome.REFUSED


def test_nothing_is_changed() -> None:
    metadata = existing()
    index, rehearsal = metadata.index, ImportRehearsal(metadata)
    rehearsal.apply(PutVhost(name="w"))
    rehearsal.apply(policy("v", {"max-length": 1}))
    assert (metadata.index, [*metadata.vhosts.by_name]) == (index, ["v"])
    vhost = metadata.vhost("v")
    assert vhost is not None
    assert not vhost.policies.by_name
