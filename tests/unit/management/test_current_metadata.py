"""HTTP requests for what another node has just created, with and without a body, and without a majority."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web
from aiohttp.streams import EmptyStreamReader, StreamReader
from aiohttp.test_utils import make_mocked_request
from tests.unit.metadata.late_proposals import LateProposals

from warren.errors import HomeDown, MetadataTimeout, NotFound
from warren.management.auth import check_credentials
from warren.management.current_metadata import with_current_metadata
from warren.management.managed_node import ManagedNode
from warren.management.replies import RequestRefused, bad_request, done, missing
from warren.metadata.commands import PutUser, PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.users import User


class Requested:
    """A request for the virtual host v, which this node may not have yet."""

    def __init__(self, refusal: Exception | None = None, *, has_body: bool = False) -> None:
        self.metadata = Metadata()
        self.proposals = LateProposals(self.metadata)
        self.refusal = missing("there is no virtual host 'v'") if refusal is None else refusal
        self.count = 0
        # A payload that is not the empty one, of which nothing is read.
        payload = cast("StreamReader", object()) if has_body else EmptyStreamReader()
        self.request = make_mocked_request("DELETE", "/api/vhosts/v", payload=payload)

    async def answer(self) -> web.StreamResponse:
        self.count += 1
        if self.metadata.vhost("v") is None:
            raise self.refusal
        return done()

    def status(self) -> int:
        answer = with_current_metadata(self.request, self.metadata, self.proposals, self.answer)
        try:
            return asyncio.run(answer).status  # type: ignore[arg-type]
        except RequestRefused as refused:
            return refused.response.status
        except MetadataTimeout:
            return 503


@pytest.mark.parametrize("refusal", [None, NotFound("no v")])
def test_what_another_node_has_just_created_is_found(refusal: Exception | None) -> None:
    requested = Requested(refusal)
    requested.proposals.others = [PutVhost(name="v")]
    assert requested.status() == 204
    assert (requested.count, requested.proposals.count) == (2, 1)
    assert requested.status() == 204
    assert (requested.count, requested.proposals.count) == (3, 1)


def test_what_nobody_has_created_is_not_found() -> None:
    requested = Requested()
    assert requested.status() == 404
    assert requested.count == 1


def test_a_request_with_a_body_is_handled_once_behind_all_that_was_agreed_on() -> None:
    requested = Requested(has_body=True)
    requested.proposals.others = [PutVhost(name="v")]
    assert requested.status() == 204
    assert (requested.count, requested.proposals.count) == (1, 1)


@pytest.mark.parametrize("has_body", [True, False])
def test_without_a_majority_nothing_is_said_not_to_exist(*, has_body: bool) -> None:
    requested = Requested(has_body=has_body)
    requested.proposals.has_majority = False
    assert requested.status() == 503
    requested = Requested(bad_request("wrong"), has_body=has_body)
    requested.proposals.has_majority = False
    assert requested.status() == 400


@pytest.mark.parametrize("has_body", [True, False])
def test_without_a_majority_what_exists_here_is_answered(*, has_body: bool) -> None:
    requested = Requested(has_body=has_body)
    asyncio.run(requested.proposals.propose(PutVhost(name="v")))  # type: ignore[arg-type]
    requested.proposals.has_majority = False
    assert requested.status() == 204


def test_that_a_home_is_down_is_not_doubted() -> None:
    requested = Requested(HomeDown("down"))
    requested.proposals.has_majority = False
    with pytest.raises(HomeDown):
        requested.status()


def user(*tags: str) -> User:
    return User(name="u", password_hash=b"", hashing_algorithm="", tags=tags, limits={})


@pytest.mark.parametrize("is_granted", [True, False])
def test_a_tag_that_another_node_has_just_given_is_enough(*, is_granted: bool) -> None:
    metadata = Metadata()
    proposals = LateProposals(metadata)
    if is_granted:
        tagged = PutUser(name="u", password_hash=b"", hashing_algorithm="", tags=("management",))
        proposals.others = [tagged]

    async def authenticate(*_: object, protocol: str) -> User:
        return user()

    admission_control = SimpleNamespace(authenticate=authenticate)
    node = SimpleNamespace(
        metadata=metadata, proposals=proposals, server=SimpleNamespace(admission_control=admission_control)
    )
    checked = check_credentials(make_mocked_request("GET", "/"), cast("ManagedNode", node), b"u:u")
    if is_granted:
        assert asyncio.run(checked) == metadata.users.by_name["u"]
    else:
        with pytest.raises(RequestRefused) as caught:
            asyncio.run(checked)
        assert caught.value.response.status == 401
