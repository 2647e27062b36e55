"""Asks a started broker over HTTP."""

import base64
import http.client
import json

from tests.integration.process import Broker

TIMEOUT_S = 30


def get(node: Broker, path: str, protocol: str = "http") -> tuple[int, bytes]:
    """What guest gets: status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", node.ports[protocol], timeout=TIMEOUT_S)
    authorization = "Basic " + base64.b64encode(b"guest:guest").decode()
    connection.request("GET", path, headers={"authorization": authorization})
    response = connection.getresponse()
    return response.status, response.read()


def states(node: Broker) -> list[str]:
    """Of all connections."""
    return [connection["state"] for connection in json.loads(get(node, "/api/connections")[1])]
