"""Bounds of the HTTP server and its clients, each with its reason; `limits` has the other bounds."""

# Time for definitions to arrive over HTTPS: the start of the node waits for them.
DEFINITIONS_TIMEOUT_MS = 60_000
# Bytes of the body of an unauthenticated request: a name and a password, or a token.
HTTP_LOGIN_SIZE_MAX = 65_536
# Bytes of all request bodies that are being received.
HTTP_BODIES_SIZE_MAX = 134_217_728
# Connections of one HTTP port, fewer if there are few file descriptors: browsers open six each.
HTTP_CONNECTIONS_MAX = 2_048
# One address may have one in this many of these connections: a proxy or a company may be behind it.
HTTP_ADDRESS_SHARE = 2
# Time for the request line and the headers of a request, from the first byte (s).
HTTP_HEADERS_S = 10.0
# Time without a request after which a connection is closed (s): RabbitMQ's idle_timeout.
HTTP_IDLE_S = 60.0
# Bytes of the request line and all headers: four large tokens.
HTTP_HEADERS_SIZE_MAX = 65_536
# Bytes of one header: a token of TOKEN_SIZE_MAX in base64, and its name.
HTTP_HEADER_SIZE_MAX = 24_576
# Headers of a request, as Apache's LimitRequestFields.
HTTP_HEADERS_MAX = 100
# Bytes of the request line, as in nginx: enough for many names.
HTTP_LINE_SIZE_MAX = 8_190
# Time in which a part of a body or response must be transferred (s), or the connection is closed.
HTTP_STALLED_S = 30.0
# Bytes of that part: the rate of a modem. Larger bodies and responses may take longer accordingly.
HTTP_STALLED_SIZE_MIN = 30_000
# Event streams of one user at once: a wall of screens.
LIVE_USER_STREAMS_MAX = 200
# Responses computed at once for all event streams: each is in memory with the data that it is made from.
LIVE_ASKED_AT_ONCE_MAX = 4
# Bytes of one response in an event stream.
LIVE_EVENT_SIZE_MAX = 1_048_576
# Send buffer of the kernel for an event stream; its default grows to megabytes.
LIVE_SOCKET_SIZE = 65_536
# Bytes of unsent events of one user; a stream that would exceed it is closed.
LIVE_USER_SIZE_MAX = 16_777_216
# Bytes of unsent events of all users of a port.
LIVE_SIZE_MAX = 67_108_864
# How long the rest of a refused body is read and discarded (s), so that the client receives the response.
HTTP_DRAIN_S = 5.0
# Characters of a reason that is translated to plain words; a longer one is returned as it is. The start of
# each term may be parsed to the end in vain.
REASON_LENGTH_MAX = 4_096
# Bytes of a request body, as in RabbitMQ 4.3: definitions are the largest.
HTTP_BODY_SIZE_MAX = 10_000_000
# Nesting of lists and objects in JSON. Tables are nested TABLE_DEPTH_MAX deep at most, and Python allows a
# thousand nested calls, several for each level when it journals, prints or applies a value.
JSON_DEPTH_MAX = 100
# Items of a page, as in RabbitMQ.
PAGE_SIZE_MAX = 500
# Records of a list that are examined, sorted or encoded in one turn: a millisecond, mostly for views.
LISTED_PER_TURN = 24
# Records of which some columns are encoded in one turn: half a millisecond.
SHOWN_PER_TURN = 256
# Objects whose metrics are computed in one turn, a line each or a sum over all families: a quarter of a ms.
EXPOSED_PER_TURN = 512
# Objects whose labels are encoded in one turn, which takes longer than a number.
DESCRIBED_PER_TURN = 128
# Exchanges in the graph of a virtual host without a centre.
PICTURED_EXCHANGES_MAX = 12
# Nodes on one side of a node in the graph; further ones are only counted, since they would not be legible.
PICTURED_AROUND_MAX = 12
# Nodes downstream of each exchange in the graph without a centre.
PICTURED_EACH_MAX = 6
# Pairs of ends with links between them in the graph; those with links that do not run come first.
PICTURED_LINKS_MAX = 12
# Links of one such pair that are named in the graph; further ones are only counted.
PICTURED_LINKS_EACH_MAX = 6
# Consumers of one queue in the graph: each is an edge that crosses others.
PICTURED_CONSUMERS_MAX = 3
# Bytes of messages got with one request; the response, which is longer, is built in memory.
HTTP_GET_SIZE_MAX = 33_554_432
# Messages in one response to a peek: some kilobytes of JSON each.
PEEKED_MAX = 1_000
# Messages examined for one response if few of them match: half a second of reading from disk.
PEEKED_PER_REQUEST_MAX = 20_000
# Deliveries listed in one request to requeue them.
RETURNED_PER_REQUEST_MAX = 1_000
# How long a publish over HTTP waits for its confirm (s) before it responds with 503.
HTTP_CONFIRM_S_MAX = 30
# Sessions of the web interface; beyond it, the least recently used one ends.
SESSIONS_MAX = 10_000
# Sessions of one user: a shared account has as many browsers, and a script that signs in repeatedly ends its
# own sessions, not those of others.
SESSIONS_OF_USER_MAX = 100
# Interval at which the last use of sessions is stored: after a kill, idle sessions end earlier by this.
SESSION_STORED_MS = 600_000
# Time without use after which a session ends: RabbitMQ's management.login_session_timeout.
SESSION_IDLE_MS = 28_800_000
# Time after which a session ends although it is used: users sign in once a day.
SESSION_MS_MAX = 86_400_000
# Time after which a session of an external user ends: the broker does not learn when the user is deleted.
SESSION_EXTERNAL_MS_MAX = 3_600_000
# Event streams at once: each of their responses is computed every 5 s.
LIVE_STREAMS_MAX = 1_000
# Paths of one event stream: a page of the web interface uses some four.
LIVE_PATHS_MAX = 16
# Bytes below which a response is not compressed, as in RabbitMQ, since it would not get smaller.
GZIP_SIZE_MIN = 300
# Idle connections that a client keeps open to one broker: for one Spark task and other threads.
HTTP_CLIENT_IDLE_MAX = 4
# Clients cached in a Spark process, each with the connections to one broker as one user.
HTTP_CLIENTS_MAX = 16
# Bytes of a JSON response that the Spark connector reads: a list of half a million queues.
HTTP_CLIENT_ANSWER_SIZE_MAX = 67_108_864
