"""Links of federated exchanges whose user has other rights from one moment to the next."""

import pytest
from tests.unit.federation.two_sites import TwoSites

from warren.metadata.commands import ClearPermissions, PutUser, RemoveUser, SetPermissions, SetUserTags
from warren.relay.status import LinkState

REFUSED = "destination: 403 ACCESS_REFUSED - access to exchange 'x' in vhost '/' refused for user 'maker'"


@pytest.fixture
def sites() -> TwoSites:
    """A federated exchange whose upstream `maker` has set, who may do everything."""
    sites = TwoSites().start()
    sites.user = "maker"
    make_user(sites)
    permit(sites)
    sites.declare()
    sites.bind("a")
    sites.federate(reconnect_delay=0)
    assert sites.is_running
    return sites


def make_user(sites: TwoSites) -> None:
    sites.apply(
        PutUser(
            name="maker",
            password_hash=b"",
            hashing_algorithm="rabbit_password_hashing_sha256",
            tags=("policymaker",),
        )
    )


def permit(sites: TwoSites, write: str = ".*") -> None:
    sites.apply(SetPermissions(user="maker", vhost="/", configure="", write=write, read=""))


def test_a_link_whose_user_may_not_publish_any_more_stops_with_the_reason(sites: TwoSites) -> None:
    permit(sites, "^other$")
    status = sites.link.status()
    assert (status.state, status.reason, status.last_error_code) == (LinkState.TERMINATED, REFUSED, 403)
    sites.publish_there("a", b"waits")
    assert sites.bodies_here() == []


def test_it_starts_again_when_the_user_may_publish_again(sites: TwoSites) -> None:
    sites.apply(ClearPermissions(user="maker", vhost="/"))
    assert sites.link.status().reason == REFUSED
    sites.publish_there("a", b"waits")
    permit(sites)
    assert sites.is_running
    assert sites.bodies_here() == [b"waits"]


def test_a_link_does_not_start_without_the_right_to_publish(sites: TwoSites) -> None:
    permit(sites, "^other$")
    sites.link.restart()
    sites.network.exchange()
    assert sites.link.status().reason == REFUSED


def test_changes_that_do_not_concern_it_leave_a_link_alone(sites: TwoSites) -> None:
    permit(sites, "^x$")
    sites.apply(SetPermissions(user="guest", vhost="/", configure="", write="", read=""))
    assert sites.is_running
    assert sites.link.status().counters.restarts == 0


def test_a_user_who_is_deleted_restarts_nothing(sites: TwoSites) -> None:
    sites.network.cut("there")
    sites.apply(RemoveUser(name="maker"))
    assert sites.link.status().state is LinkState.TERMINATED
    assert sites.link.status().counters.restarts == 0


def test_a_link_stops_when_its_user_loses_the_tag_and_starts_when_it_is_given_back(sites: TwoSites) -> None:
    sites.apply(SetUserTags(name="maker", tags=("management",)))
    status = sites.link.status()
    assert status.state is LinkState.TERMINATED
    assert status.reason == (
        "user 'maker', who has set it, has none of the tags administrator and policymaker any more"
    )
    sites.publish_there("a", b"waits")
    sites.apply(SetUserTags(name="maker", tags=("administrator",)))
    assert sites.is_running
    assert sites.bodies_here() == [b"waits"]


def test_a_link_of_a_deleted_user_does_not_run_for_a_new_user_of_that_name(sites: TwoSites) -> None:
    sites.apply(RemoveUser(name="maker"))
    make_user(sites)
    permit(sites)
    status = sites.link.status()
    assert (status.state, status.reason) == (
        LinkState.TERMINATED, "user 'maker', who has set it, is deleted: it has to be set again",
    )  # fmt: skip
    sites.set_upstream(reconnect_delay=0)
    assert sites.is_running
