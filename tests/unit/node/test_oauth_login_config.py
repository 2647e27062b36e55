"""The settings of logins to the web interface: which resource servers are offered, and what is told."""

import pytest

from warren.node.config import Config
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.errors import BootRefused
from warren.node.oauth_login_config import oauth_settings
from warren.runtime.clock import Clock

TWO = """
auth_backends.1 = oauth2
auth_oauth2.resource_server_id = rabbitmq
auth_oauth2.issuer = https://id.example/main
auth_oauth2.end_session_endpoint = https://id.example/logout
auth_oauth2.resource_servers.1.id = orders
auth_oauth2.resource_servers.2.id = sensors
auth_oauth2.resource_servers.2.oauth_provider_id = devices
auth_oauth2.oauth_providers.devices.issuer = https://devices.example
auth_oauth2.oauth_providers.devices.discovery_endpoint_path = about
management.oauth_enabled = true
management.oauth_client_id = ui
management.oauth_client_secret = the-secret
management.oauth_scopes = openid
management.oauth_authorization_endpoint_params.resource = rabbitmq
management.oauth_resource_servers.1.id = orders
management.oauth_resource_servers.1.label = Order desk
management.oauth_resource_servers.1.oauth_client_id = orders-ui
management.oauth_resource_servers.1.oauth_client_secret = own-secret
management.oauth_resource_servers.1.oauth_authorization_endpoint_params.x = y
management.oauth_resource_servers.3.id = unknown
"""
ENABLED = "management.oauth_enabled = true\n"


def config(text: str) -> Config:
    pairs = (line.split(" = ", 1) for line in text.splitlines() if line)
    return Config([ConfigEntry(key, value, "here") for key, value in pairs])


def test_the_settings_are_told_in_the_form_of_rabbitmq() -> None:
    """RabbitMQ 4.3.6 puts these into its page, measured, beside `index` and `use_token_endpoint_proxy`."""
    found = oauth_settings(config(TWO), Clock())
    shared = {
        "end_session_endpoint": "https://id.example/logout",
        "oauth_metadata_url": "https://id.example/main/.well-known/openid-configuration",
        "oauth_provider_url": "https://id.example/main",
    }
    resource = {"oauth_authorization_endpoint_params": {"resource": "rabbitmq"}}
    assert found.described == {
        "oauth_enabled": True,
        "oauth_disable_basic_auth": True,
        "oauth_client_id": "ui",
        "oauth_scopes": "openid",
        **resource,
        "oauth_resource_servers": {
            "rabbitmq": {"id": "rabbitmq", **shared, **resource},
            "orders": {
                "id": "orders",
                "label": "Order desk",
                "oauth_client_id": "orders-ui",
                **shared,
                "oauth_authorization_endpoint_params": {"x": "y"},
            },
            "sensors": {
                "id": "sensors",
                "oauth_provider_url": "https://devices.example",
                "oauth_metadata_url": "https://devices.example/about",
                **resource,
            },
        },
    }
    assert found.is_password_refused
    clients = {id: server.client for id, server in found.servers.items()}
    assert [client.client_id for client in clients.values()] == ["ui", "orders-ui", "ui"]
    assert [client.client_secret for client in clients.values()] == ["the-secret", "own-secret", "the-secret"]
    assert "secret" not in repr(clients)
    assert [server.label for server in found.servers.values()] == ["rabbitmq", "Order desk", "sensors"]


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace("oauth_enabled = true", "oauth_enabled = false"),
        # Without a client, a provider, or a resource server.
        f"{ENABLED}auth_oauth2.resource_server_id = rabbitmq\nauth_oauth2.issuer = https://x",
        f"{ENABLED}auth_oauth2.resource_server_id = rabbitmq\nmanagement.oauth_client_id = x",
        f"{ENABLED}auth_oauth2.issuer = https://x\nmanagement.oauth_client_id = x",
    ],
)
def test_without_a_usable_resource_server_users_log_in_with_passwords(text: str) -> None:
    found = oauth_settings(config(text), Clock())
    assert (found.described, found.is_password_refused) == ({"oauth_enabled": False}, False)


def test_a_provider_may_be_one_of_the_web_interface_only() -> None:
    text = """
auth_backends.1 = oauth2
auth_oauth2.resource_server_id = rabbitmq
auth_oauth2.jwks_url = https://uaa.example/keys
management.oauth_enabled = true
management.oauth_disable_basic_auth = false
management.oauth_provider_url = https://uaa.example/
management.oauth_initiated_logon_type = idp_initiated
"""
    found = oauth_settings(config(text), Clock())
    (server,) = found.servers.values()
    assert (server.provider_url, server.is_idp_initiated) == ("https://uaa.example/", True)
    assert found.idp_server is server
    assert not found.is_password_refused
    assert found.described["oauth_initiated_logon_type"] == "idp_initiated"
    described = found.described["oauth_resource_servers"]
    metadata = "https://uaa.example/.well-known/openid-configuration"
    assert described["rabbitmq"]["oauth_metadata_url"] == metadata  # type: ignore[index]


def test_an_address_without_tls_or_another_flow_is_refused() -> None:
    for key in (
        "management.oauth_provider_url",
        "management.oauth_metadata_url",
        "auth_oauth2.token_endpoint",
    ):
        with pytest.raises(BootRefused, match=f"{key} must be an https address"):
            oauth_settings(config(f"{TWO}{key} = http://id.example"), Clock())
    with pytest.raises(ConfigError, match="must be one of code"):
        config("management.oauth_response_type = token")
