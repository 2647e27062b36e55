"""Who somebody is: a name, and who vouches for it.

    of a user in the metadata | name
    of anybody else           | NUL issuer NUL name

An identity is what owns leases, jobs, staged rows, links and connections, and what is compared; a name is
what is shown. A token or a directory chooses names freely, so that two users with the same name can be two
people. No user in the metadata has a name that begins with NUL (`Users.put`).
"""

# The issuer of users in the metadata.
INTERNAL = "internal"

_MARK = "\0"


def identity_of(name: str, issuer: str) -> str:
    """The identity of the user for whose `name` the `issuer` vouches."""
    return name if issuer == INTERNAL else f"{_MARK}{issuer}{_MARK}{name}"


def shown_name(identity: str) -> str:
    """The name of the user."""
    return identity.split(_MARK, 2)[2] if is_external(identity) else identity


def issuer_of(identity: str) -> str:
    """Who vouches for the name."""
    return identity.split(_MARK, 2)[1] if is_external(identity) else INTERNAL


def is_external(identity: str) -> bool:
    """True if the user is not one in the metadata."""
    return identity.startswith(_MARK) and identity.count(_MARK) >= 2
