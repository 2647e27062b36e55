"""Requests on their way to another node: encoding, bounds of what is decoded, and whose rights they have."""

import msgspec
import pytest

from warren.access.grants import grants_of, token_user
from warren.access.scopes import Scopes
from warren.management.carried_request import (
    AnswerHead,
    CarriedRequest,
    CarriedRequestError,
    CarriedUser,
    ListPart,
    carried_user,
    decode_request,
    encode_head,
    encode_request,
    requester_of,
    split_head,
)
from warren.metadata.commands import PutUser, PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission
from warren.metadata.proposals import LocalProposals

GUEST = CarriedUser(name="guest")


def metadata() -> Metadata:
    found = Metadata()
    local = LocalProposals(found, lambda: 0)
    for name in ("/", "other"):
        local.apply(PutVhost(name=name))
    local.apply(PutUser(name="guest", password_hash=b"", hashing_algorithm="", tags=("monitoring",)))
    return found


def test_a_request_is_decoded_as_it_was_encoded() -> None:
    request = CarriedRequest(
        method="POST", path="/api/queues/%2F/q/get?a=b", user=GUEST, headers={"accept": "*/*"}, body=b"{}",
        part=ListPart.ROWS, names=("a", "b"),
    )  # fmt: skip
    assert decode_request(encode_request(request)) == request


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode({"method": "GET"}),
        msgspec.msgpack.encode({"method": "GET", "path": 5, "user": {"name": "guest"}}),
        msgspec.msgpack.encode(
            {"method": "GET", "path": "/api/x", "user": {"name": "guest"}, "part": "other"}
        ),
        encode_request(CarriedRequest(method="GET", path="http://elsewhere/api/x", user=GUEST)),
        encode_request(CarriedRequest(method="GET", path="/api/\N{SNOWMAN}", user=GUEST)),
    ],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(CarriedRequestError):
        decode_request(data)


def test_an_answer_begins_with_its_head() -> None:
    head = AnswerHead(status=200, headers={"content-type": "text/plain"}, is_stream=True)
    data = encode_head(head) + b"body"
    assert split_head(data) == (head, b"body")
    for size in range(len(data) - len(b"body")):
        assert split_head(data[:size]) is None
    with pytest.raises(CarriedRequestError):
        split_head(b"\0\0\0\1\xc1")


def test_the_rights_of_a_user_in_the_metadata_are_those_of_the_node_that_is_asked() -> None:
    here = metadata()
    carried = carried_user(here, here.users.by_name["guest"], None)
    assert carried == GUEST
    assert requester_of(carried, here) is here.users.by_name["guest"]
    assert requester_of(CarriedUser(name="nobody", tags=("administrator",)), here) is None


def test_the_rights_of_a_user_of_a_token_are_carried_for_the_virtual_hosts_that_matter() -> None:
    here = metadata()
    scopes = Scopes(["read:*/*", "tag:management"])
    user = token_user("token", scopes, None)
    everywhere, in_one = carried_user(here, user, None), carried_user(here, user, "other")
    assert list(everywhere.permissions) == ["/", "other"]
    assert list(in_one.permissions) == ["other"]
    there = requester_of(in_one, Metadata())
    assert there is not None
    grants = grants_of(Metadata(), there)
    assert grants.permission("other") == grants_of(here, user).permission("other")
    assert isinstance(grants.permission("other"), Permission)
    assert grants.permission("/") is None
    topics = grants.topic_permission("other", "amq.topic")
    assert topics is not None
    assert topics.write == topics.read == "(?!)"
