"""Every bound of logins by tokens, certificates and web servers, each with its reason."""

# Bytes of a regular expression in a scope, as in RabbitMQ 4.4.
SCOPE_PATTERN_SIZE_MAX = 2_048
# Size of an OpenID provider's description of itself, which is a few kilobytes.
DISCOVERY_SIZE_MAX = 262_144
# How long the address of a key set is used that a provider has told: providers rarely change it.
DISCOVERY_LIFETIME_MS = 3_600_000
# Size of a file of revoked certificates: a million of them.
REVOCATION_LIST_SIZE_MAX = 67_108_864
# Size of a list of revoked certificates that is fetched: two hundred thousand of them.
REVOCATION_FETCH_SIZE_MAX = 8_388_608
# Lists that are fetched, at once: of each authority that issues certificates of clients, and of those above.
REVOCATION_ADDRESSES_MAX = 16
# How long the start of a node may wait for a server that does not answer.
REVOCATION_FETCH_MS_MAX = 60_000
# How long a list is used before it is fetched again, however far its end is: then what is revoked is refused.
REVOCATION_INTERVAL_MS_MAX = 3_600_000
# The least time between two requests for a list, also after a failure: its server has other work.
REVOCATION_INTERVAL_MS_MIN = 60_000
# Timeout of a login at a web server, and of a connection to it, as in RabbitMQ.
HTTP_LOGIN_TIMEOUT_MS = 15_000
# Connections to that server: each login uses one for some milliseconds.
HTTP_LOGIN_CONNECTIONS_MAX = 16
# Logins that wait for a connection to it: some seconds of work.
HTTP_LOGIN_WAITING_MAX = 1_024
# Size of its answer: one word, and the tags or a reason.
HTTP_LOGIN_ANSWER_SIZE_MAX = 16_384
# Time in which a user logs in at an OpenID provider, with a second factor and a forgotten password.
LOGIN_LIFETIME_MS = 600_000
# Timeout of a request to a provider for a login or its renewal.
PROVIDER_TIMEOUT_MS = 10_000
# Requests to a provider at once: each takes some milliseconds, and strangers can cause them.
PROVIDER_REQUESTS_MAX = 16
# Size of what a token endpoint answers: an access token, a refresh token and an ID token.
TOKEN_ANSWER_SIZE_MAX = 65_536
# How long before the expiry of its token a session of the web interface gets another one, if it has a request
# then: longer than the interval of the requests of an open page.
TOKEN_RENEWAL_MS = 60_000
# Interval at which a failed renewal is tried again.
TOKEN_RENEWAL_INTERVAL_MS = 10_000
# Permissions of all users that a web server has decided and that are kept by the node: 1 MB of names.
WEB_DECISIONS_CACHED_MAX = 4_096
# Of these, those that a channel, a login or a request keeps for its life: RabbitMQ keeps 12 for a channel.
WEB_ANSWERS_KEPT_MAX = 256
# Questions that one operation may ask: a few, or two about each stream of a client of streams.
WEB_QUESTIONS_MAX = 512
# Questions that wait for a connection to the server: some seconds of work.
WEB_QUESTIONS_WAITING_MAX = 1_024
