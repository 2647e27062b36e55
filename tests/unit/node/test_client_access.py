"""Closing clients, and the causes for which none are accepted."""

import asyncio

from tests.unit.node.test_broker import connect, make

from warren.node.client_access import ClientAccess
from warren.session.peer import Peer


def test_the_connections_of_clients_are_closed_and_those_of_the_node_itself_are_not() -> None:
    async def work() -> None:
        # A link does not count as coming from the loopback address.
        broker = make(loopback_users__guest="false")
        clients = [connect(broker) for _ in range(20)]
        peer = Peer(host="", port=0, server_host="", server_port=0, local_name="<shovel>")
        own = connect(broker, peer=peer)
        access = ClientAccess([], broker.server, broker.server.later)
        await access.suspend("maintenance", "Node was put into maintenance mode")
        for client in clients:
            assert not client.is_open
            assert b"CONNECTION_FORCED - Node was put into maintenance mode" in b"".join(client.take_output())
        assert own.is_open

    asyncio.run(work())


def test_clients_are_accepted_when_no_cause_against_it_is_left() -> None:
    async def work() -> None:
        broker = make()
        access = ClientAccess([], broker.server, broker.server.later)
        assert access.is_open
        await access.suspend("maintenance", "")
        await access.suspend("minority", "")
        await access.resume("maintenance")
        assert not access.is_open
        await access.resume("maintenance")
        await access.resume("minority")
        assert access.is_open

    asyncio.run(work())
