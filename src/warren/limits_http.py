"""The bounds of HTTP, beside those in `limits`, each with its reason."""

# A body of somebody who has not said yet who they are: a name and a password, or a token.
HTTP_LOGIN_SIZE_MAX = 65_536
# All bodies that are being read together.
HTTP_BODIES_SIZE_MAX = 134_217_728
# Connections of one port of HTTP: browsers open six each; fewer where there are few descriptors.
HTTP_CONNECTIONS_MAX = 2_048
# One of so many of these may be of one address, behind which there may be a proxy or a company.
HTTP_ADDRESS_SHARE = 2
# For how long the line and the headers of a request may come, from their first octet on (s).
HTTP_HEADERS_S = 10.0
# How long a connection may be without a request (s): as RabbitMQ's idle_timeout.
HTTP_IDLE_S = 60.0
# The octets of a request's line and headers together: four large tokens.
HTTP_HEADERS_SIZE_MAX = 65_536
# One header: a token of TOKEN_SIZE_MAX in base64, and its name.
HTTP_HEADER_SIZE_MAX = 24_576
# How many headers a request may have: as Apache's LimitRequestFields.
HTTP_HEADERS_MAX = 100
# The octets of the line of a request: as nginx, and many names of RabbitMQ's length.
HTTP_LINE_SIZE_MAX = 8_190
# What of an answer or of a body must move within so long (s), else nobody is there ...
HTTP_STALLED_S = 30.0
# ... namely so many octets: a modem's worth. Bodies and answers may be megabytes, and take as long as that.
HTTP_STALLED_SIZE_MIN = 30_000
# Streams of answers of one user at once: a wall of screens.
LIVE_USER_STREAMS_MAX = 200
# Answers that are asked for at once for all streams: each is in memory, with what it is made of.
LIVE_ASKED_AT_ONCE_MAX = 4
# One answer that is followed: as what goes out whole.
LIVE_EVENT_SIZE_MAX = 1_048_576
# What the kernel holds of a stream, about; by itself it would take megabytes for each.
LIVE_SOCKET_SIZE = 65_536
# Octets that one user's streams wait to be read; a stream that would have more of them wait ends.
LIVE_USER_SIZE_MAX = 16_777_216
# And those of all users of a port.
LIVE_SIZE_MAX = 67_108_864
# How long the rest of a body that nobody wants is read and thrown away (s), so that its sender sees why.
HTTP_REST_S = 5.0
# Characters of a reason that is said in plain words: a longer one is said as it is. Each begin of a term may
# be read to the end in vain.
REASON_LENGTH_MAX = 4_096
