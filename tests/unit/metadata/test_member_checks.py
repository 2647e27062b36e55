"""What a command says of a member has a form and a size, or is refused before it is written."""

import pytest
from msgspec.structs import replace

from warren.metadata import bounds
from warren.metadata.bounds import beyond_bounds
from warren.metadata.commands import CommandContext, Outcome
from warren.metadata.machine import Metadata
from warren.metadata.member_checks import member_refusal
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp

FORM = FormCluster(cluster_id=b"c" * 16, name="a@h", host="h", cluster_port=1, incarnation=1, feature_level=0)
ADMIT = AdmitMember(name="é" * 127, host="h" * 255, cluster_port=65_535, incarnation=1, feature_level=1)
UP = MemberUp(
    id=1, incarnation=(1 << 63) - 1, host="h", cluster_port=1, feature_level=1, amqp_host="p", amqp_port=9
)


@pytest.mark.parametrize("command", [FORM, ADMIT, UP])
def test_a_member_may_have_a_long_name(command: FormCluster | AdmitMember | MemberUp) -> None:
    assert member_refusal(command) is None


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (replace(FORM, cluster_id=b"c" * 15), "the id of a cluster has 16 bytes, not 15"),
        (replace(FORM, name=""), "the name of a member is empty"),
        (replace(ADMIT, name="é" * 128), "the name of a member has 256 bytes, more than 255"),
        (replace(ADMIT, name="\ud800" * 86), "the name of a member has 258 bytes, more than 255"),
        (replace(UP, host=""), "the host of a member is empty"),
        (replace(UP, host="h" * 256), "the host of a member has 256 bytes, more than 255"),
        (replace(ADMIT, cluster_port=0), "0 is no port"),
        (replace(FORM, cluster_port=65_536), "65536 is no port"),
        (replace(UP, amqp_port=70_000), "70000 is no port"),
        (replace(UP, amqp_host="h" * 256), "the host for clients has 256 bytes, more than 255"),
        (replace(UP, amqp_host=None), "an address for clients has a host and a port"),
        (replace(FORM, amqp_host="p"), "an address for clients has a host and a port"),
        (replace(ADMIT, incarnation=0), "0 is no number of a run"),
        (replace(UP, incarnation=1 << 63), f"{1 << 63} is no number of a run"),
        (replace(UP, feature_level=-1), "-1 is no feature level"),
    ],
)
def test_what_cannot_be_a_member_is_refused(command: FormCluster | AdmitMember | MemberUp, text: str) -> None:
    assert member_refusal(command) == text
    assert beyond_bounds(Metadata(), command) == text


def test_a_cluster_has_a_bounded_number_of_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CLUSTER_MEMBERS_MAX", 2)
    metadata = Metadata()
    replies = [
        metadata.apply(command, CommandContext(index=index, now=0))
        for index, command in enumerate([FORM, replace(ADMIT, name="b"), replace(ADMIT, name="c")], 1)
    ]
    assert [reply.outcome for reply in replies] == [Outcome.DONE, Outcome.DONE, Outcome.REFUSED]
    assert replies[-1].text == "the limit of 2 members is reached"
    # A log is read as it is.
    accepted = CommandContext(index=4, now=0, is_accepted=True)
    assert metadata.apply(replace(ADMIT, name="c"), accepted).outcome is Outcome.DONE
