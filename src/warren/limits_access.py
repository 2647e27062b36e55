"""Every bound of logins by tokens, certificates and web servers, each with its reason."""

# Bytes of a regular expression in a scope, as in RabbitMQ 4.4.
SCOPE_PATTERN_SIZE_MAX = 2_048
# Size of an OpenID provider's description of itself, which is a few kilobytes.
DISCOVERY_SIZE_MAX = 262_144
# How long the address of a key set is used that a provider has told: providers rarely change it.
DISCOVERY_LIFETIME_MS = 3_600_000
# Size of a file of revoked certificates: a million of them.
REVOCATION_LIST_SIZE_MAX = 67_108_864
