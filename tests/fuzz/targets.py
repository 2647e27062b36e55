"""The fuzz targets: for each, what must hold for any bytes, and the seed inputs.

A target returns if the input is handled, refusals included; any other exception is a finding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

# By name: a module, and its functions for the check and for the seed inputs. A module is imported only for
# its own targets, because everything imported has to be instrumented.
TARGETS = {
    "table": ("wire", "check_tables", "table_seeds"),
    "properties": ("wire", "check_properties", "property_seeds"),
    "methods": ("wire", "check_methods", "method_seeds"),
    "frames": ("wire", "check_frames", "frame_seeds"),
    "streams": ("wire", "check_stream_frames", "stream_seeds"),
    "amqp1": ("wire", "check_amqp_1", "amqp_1_seeds"),
    "sessions": ("sessions", "check_session", "session_seeds"),
    "stream-sessions": ("stream_sessions", "check_stream_session", "stream_session_seeds"),
    "api": ("http_api", "check_api", "api_seeds"),
    "shapes": ("arrow", "check_shapes", "shape_seeds"),
    "staged": ("arrow", "check_staged", "staged_seeds"),
    "definitions": ("documents", "check_imported_definitions", "definition_seeds"),
    "configuration": ("documents", "check_configuration", "configuration_seeds"),
    "conditions": ("documents", "check_conditions", "condition_seeds"),
    "names": ("documents", "check_names", "name_seeds"),
    "journal": ("disk", "check_journal", "damage_seeds"),
    "store": ("disk", "check_store", "damage_seeds"),
    "stream-log": ("disk", "check_stream_log", "damage_seeds"),
    "ldap": ("network", "check_ldap", "ldap_seeds"),
    "link-frames": ("cluster_links", "check_link_frames", "link_frame_seeds"),
    "node-links": ("cluster_links", "check_link", "link_seeds"),
    "proxy": ("network", "check_proxy", "proxy_seeds"),
    "tokens": ("network", "check_tokens", "token_seeds"),
    "keys": ("network", "check_keys", "key_seeds"),
    "client": ("connector", "check_client", "client_seeds"),
    "client-sessions": ("client_sessions", "check_client_session", "client_session_seeds"),
    "deliveries": ("connector", "check_deliveries", "delivery_seeds"),
    "confirms": ("connector", "check_confirms", "confirm_seeds"),
    "rows": ("connector", "check_rows", "row_seeds"),
    "answers": ("connector", "check_answers", "answer_seeds"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One function to feed bytes to."""

    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def load(name: str) -> Target:
    """The target `name`, imported with the functions of its check."""
    module, check, seeds = TARGETS[name]
    loaded = import_module(f"tests.fuzz.{module}")
    return Target(check=getattr(loaded, check), seeds=getattr(loaded, seeds))
