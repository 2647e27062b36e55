"""The bounds of HTTP, beside those in `limits`, each with its reason."""

# A body of somebody who has not said yet who they are: a name and a password, or a token.
HTTP_LOGIN_SIZE_MAX = 65_536
# All bodies that are being read together.
HTTP_BODIES_SIZE_MAX = 134_217_728
# Connections of one port of HTTP: browsers open six each; fewer where there are few descriptors.
HTTP_CONNECTIONS_MAX = 2_048
# One of so many of these may be of one address, behind which there may be a proxy or a company.
HTTP_ADDRESS_SHARE = 2
# For how long the line and the headers of a request may come, from their first byte on (s).
HTTP_HEADERS_S = 10.0
# How long a connection may be without a request (s): as RabbitMQ's idle_timeout.
HTTP_IDLE_S = 60.0
# The bytes of a request's line and headers together: four large tokens.
HTTP_HEADERS_SIZE_MAX = 65_536
# One header: a token of TOKEN_SIZE_MAX in base64, and its name.
HTTP_HEADER_SIZE_MAX = 24_576
# How many headers a request may have: as Apache's LimitRequestFields.
HTTP_HEADERS_MAX = 100
# The bytes of the line of a request: as nginx, and many names of RabbitMQ's length.
HTTP_LINE_SIZE_MAX = 8_190
# What of an answer or of a body must move within so long (s), else nobody is there ...
HTTP_STALLED_S = 30.0
# ... namely so many bytes: a modem's worth. Bodies and answers may be megabytes, and take as long as that.
HTTP_STALLED_SIZE_MIN = 30_000
# Streams of answers of one user at once: a wall of screens.
LIVE_USER_STREAMS_MAX = 200
# Answers that are asked for at once for all streams: each is in memory, with what it is made of.
LIVE_ASKED_AT_ONCE_MAX = 4
# One answer that is followed: as what goes out whole.
LIVE_EVENT_SIZE_MAX = 1_048_576
# What the kernel holds of a stream, about; by itself it would take megabytes for each.
LIVE_SOCKET_SIZE = 65_536
# Bytes that one user's streams wait to be read; a stream that would have more of them wait ends.
LIVE_USER_SIZE_MAX = 16_777_216
# And those of all users of a port.
LIVE_SIZE_MAX = 67_108_864
# How long the rest of a body that nobody wants is read and thrown away (s), so that its sender sees why.
HTTP_DRAIN_S = 5.0
# Characters of a reason that is said in plain words: a longer one is said as it is. Each begin of a term may
# be read to the end in vain.
REASON_LENGTH_MAX = 4_096
# Definitions are the largest thing sent to the HTTP API: as RabbitMQ 4.3.
HTTP_BODY_SIZE_MAX = 10_000_000
# Lists and objects of JSON in each other: tables are nested TABLE_DEPTH_MAX deep at most, and Python recurses
# a thousand calls deep, several for each level when it journals, prints or applies what came.
JSON_DEPTH_MAX = 100
# Entries of a page, as in RabbitMQ.
PAGE_SIZE_MAX = 500
# Records of a list that are looked at, sorted or written in one turn: a millisecond, mostly of views.
LISTED_PER_TURN = 24
# Records of which some columns are written in one turn: half a millisecond.
SHOWN_PER_TURN = 256
# Objects of which metrics are made in one turn, a line of each or a sum over all families: a quarter of a ms.
EXPOSED_PER_TURN = 512
# Objects whose labels are written in one turn, which takes longer than a number.
DESCRIBED_PER_TURN = 128
# Exchanges in a picture of a virtual host in which nothing stands in the middle.
PICTURED_EXCHANGES_MAX = 12
# What is drawn on one side of one thing: more are counted, as nobody tells them apart.
PICTURED_AROUND_MAX = 12
# And behind each exchange where all of them are drawn.
PICTURED_EACH_MAX = 6
# And consumers of one queue: each is a line that crosses others.
PICTURED_CONSUMERS_MAX = 3
# Bytes of messages that are got with one request; the answer, which is longer, is made in memory.
HTTP_GET_SIZE_MAX = 33_554_432
# Messages of one answer when somebody looks into a queue; some kilobytes of JSON each.
PEEKED_MAX = 1_000
# Messages that are looked at for one answer, if few of them fit: half a second of reading from the disk.
PEEKED_PER_REQUEST_MAX = 20_000
# Deliveries that are named in one request to take them back.
RETURNED_PER_REQUEST_MAX = 1_000
# How long a message published over HTTP may wait for its disk before the client is told that it does.
HTTP_CONFIRM_S_MAX = 30
# People signed in to the web interface at once: who was away longest is signed out for one more.
SESSIONS_MAX = 10_000
# And of one user: an account that many share has as many browsers; a script that signs in again and again
# ends its own sessions, not those of others.
SESSIONS_OF_USER_MAX = 100
# How old what is stored of the last use of sessions may be: after a kill they end so much earlier when idle.
SESSION_STORED_MS = 600_000
# How long nobody may use a session before it ends: as RabbitMQ's management.login_session_timeout.
SESSION_IDLE_MS = 28_800_000
# And when it ends although it is used: people sign in once a day.
SESSION_MS_MAX = 86_400_000
# And when that of somebody ends whom a directory knows, where they may be deleted without our knowing.
SESSION_EXTERNAL_MS_MAX = 3_600_000
# Streams of answers that are followed at once: each answer is asked for every 5 s.
LIVE_STREAMS_MAX = 1_000
# Answers that one stream follows: a page of the web interface looks at some four.
LIVE_PATHS_MAX = 16
# Answers of fewer bytes are not compressed: as RabbitMQ's, which gain nothing by it.
GZIP_SIZE_MIN = 300
# Idle connections that a client keeps open to one broker: for a task of Spark, and for threads beside it.
HTTP_CLIENT_IDLE_MAX = 4
# Clients that a process of Spark keeps, each with the connections of one broker and user: more are rare.
HTTP_CLIENTS_MAX = 16
# Bytes of an answer in JSON that the Spark connector reads: a list of half a million queues.
HTTP_CLIENT_ANSWER_SIZE_MAX = 67_108_864
