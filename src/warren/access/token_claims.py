"""What the claims of a token say: the name of its user, and the scopes for one resource server."""

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from warren.access.scopes import ScopeSyntax, wildcard_pattern
from warren.model.patterns import matches

# The claims that are tried after the configured ones for the user name.
_NAME_CLAIMS = ("sub", "client_id")
# Of an authorization request in detail (RFC 9396), as RabbitMQ reads it.
_DETAILS = "authorization_details"
_TAGS = frozenset(("administrator", "management", "monitoring", "policymaker"))
_ACCESSES = frozenset(("configure", "read", "write"))
_ANY = "*"


class ClaimSettings(Struct, frozen=True, kw_only=True):
    """How the claims of the tokens for one resource server are read."""

    resource_server_id: str = ""
    # The prefix of scopes for this broker; None: the id of the resource server and a dot.
    scope_prefix: str | None = None
    scope_syntax: ScopeSyntax = ScopeSyntax.WILDCARD
    name_claims: tuple[str, ...] = ()
    additional_scopes_key: str = ""
    # Aliases, each of which stands for several scopes.
    scope_aliases: Mapping[str, str] = field(default_factory=dict)
    # The type of the details of authorization that are for this broker; empty: they are not read.
    resource_server_type: str = ""

    @property
    def prefix(self) -> str:
        """The text with which the scopes for this broker begin."""
        if self.scope_prefix is not None:
            return self.scope_prefix
        return f"{self.resource_server_id}." if self.resource_server_id else ""


def name_in(claims: Mapping[str, object], settings: ClaimSettings) -> str:
    """The name of the user; empty if the token has none."""
    for claim in (*settings.name_claims, *_NAME_CLAIMS):
        value = claims.get(claim)
        if isinstance(value, str) and value:
            return value
    return ""


def scopes_in(claims: Mapping[str, object], settings: ClaimSettings) -> list[str]:
    """The scopes that begin with the configured prefix, without the prefix."""
    words = [*_words(claims.get("scope")), *_keycloak(claims)]
    for key in settings.additional_scopes_key.split():
        words.extend(_additional(claims, key, settings))
    aliases = settings.scope_aliases
    meant = [scope for word in words for scope in (aliases[word].split() if word in aliases else [word])]
    prefix = settings.prefix
    own = [scope.removeprefix(prefix) for scope in meant if scope.startswith(prefix)]
    return [*own, *_detailed(claims, settings)]


def _additional(claims: Mapping[str, object], key: str, settings: ClaimSettings) -> list[str]:
    """The scopes in another claim, named by a path.

    If it is an object, those under the resource server's id.
    """
    value: object = claims
    for part in [key] if key in claims else key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        return [f"{settings.prefix}{word}" for word in _words(value.get(settings.resource_server_id))]
    return _words(value)


def _keycloak(claims: Mapping[str, object]) -> list[str]:
    """The scopes of Keycloak's authorization services, which are in the permissions of the token."""
    authorization = claims.get("authorization")
    permissions = authorization.get("permissions") if isinstance(authorization, Mapping) else None
    found = permissions if isinstance(permissions, list) else []
    return [word for one in found if isinstance(one, Mapping) for word in _words(one.get("scopes"))]


def _detailed(claims: Mapping[str, object], settings: ClaimSettings) -> Iterator[str]:
    """The scopes of the details of authorization: actions at locations, or tags."""
    details = claims.get(_DETAILS)
    for one in details if isinstance(details, list) and settings.resource_server_type else []:
        if not isinstance(one, Mapping) or one.get("type") != settings.resource_server_type:
            continue
        places = [
            place
            for written in _listed(one.get("locations"))
            if (place := _place(written, settings.resource_server_id)) is not None
        ]
        for action in _listed(one.get("actions")) if places else []:
            if action in _TAGS:
                yield f"tag:{action}"
            elif action in _ACCESSES:
                yield from (f"{action}:{place}" for place in places)


def _place(written: str, resource_server_id: str) -> str | None:
    """The resource of a scope for `cluster:ID/vhost:NAME/queue:NAME`; None if it is of another broker."""
    pairs = ([text for text in part.split(":") if text][:2] for part in written.split("/"))
    parts = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    queue, exchange = parts.get("queue"), parts.get("exchange")
    if "cluster" not in parts or not matches(wildcard_pattern(parts["cluster"]), resource_server_id):
        return None
    if queue is not None and exchange is not None and queue != exchange:
        return None
    name = exchange if queue is None else queue
    return "/".join(
        (parts.get("vhost", _ANY), _ANY if name is None else name, parts.get("routing-key", _ANY))
    )


def _listed(value: object) -> list[str]:
    """The texts of a claim that is a text or a list of texts."""
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _words(value: object) -> list[str]:
    """The words of a claim that is a space-separated text or a list of texts."""
    return value.split() if isinstance(value, str) else _listed(value)
