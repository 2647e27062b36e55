"""How file descriptors are shared out."""

import pytest

from warren.limits_http import HTTP_CONNECTIONS_MAX
from warren.node.descriptors import shares


@pytest.mark.parametrize("descriptors", [256, 1_024, 65_536, 1_048_576])
@pytest.mark.parametrize("ports", [1, 2, 4])
def test_a_quarter_is_left_for_files_whatever_clients_do(descriptors: int, ports: int) -> None:
    shared = shares(descriptors, ports)
    assert shared.clients + ports * shared.each_of_http <= descriptors * 3 // 4
    assert shared.clients >= descriptors // 4
    assert 8 <= shared.each_of_http <= HTTP_CONNECTIONS_MAX
