"""Every bound of logins by tokens, certificates and web servers, each with its reason."""

# Bytes of a regular expression in a scope, as in RabbitMQ 4.4.
SCOPE_PATTERN_SIZE_MAX = 2_048
# Size of an OpenID provider's description of itself, which is a few kilobytes.
DISCOVERY_SIZE_MAX = 262_144
# How long the address of a key set is used that a provider has told: providers rarely change it.
DISCOVERY_LIFETIME_MS = 3_600_000
# Size of a file of revoked certificates: a million of them.
REVOCATION_LIST_SIZE_MAX = 67_108_864
# Timeout of a login at a web server, and of a connection to it, as in RabbitMQ.
HTTP_LOGIN_TIMEOUT_MS = 15_000
# Connections to that server: each login uses one for some milliseconds.
HTTP_LOGIN_CONNECTIONS_MAX = 16
# Logins that wait for a connection to it: some seconds of work.
HTTP_LOGIN_WAITING_MAX = 1_024
# Size of its answer: one word, and the tags or a reason.
HTTP_LOGIN_ANSWER_SIZE_MAX = 16_384
