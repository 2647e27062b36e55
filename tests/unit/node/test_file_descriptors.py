"""How file descriptors are divided between connections and files."""

import pytest

from warren.limits_http import HTTP_CONNECTIONS_MAX
from warren.node.file_descriptors import connection_limits


@pytest.mark.parametrize("descriptors", [256, 1_024, 65_536, 1_048_576])
@pytest.mark.parametrize("ports", [1, 2, 4])
def test_a_quarter_of_the_descriptors_is_reserved_for_files(descriptors: int, ports: int) -> None:
    shared = connection_limits(descriptors, ports)
    assert shared.clients + ports * shared.per_http_port <= descriptors * 3 // 4
    assert shared.clients >= descriptors // 4
    assert 32 <= shared.outgoing <= max(32, descriptors // 8)
    assert 8 <= shared.per_http_port <= HTTP_CONNECTIONS_MAX
