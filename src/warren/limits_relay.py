"""Every bound of connections to other brokers, each with its reason. Sizes are in bytes."""

# The time to open a connection to another broker, as RabbitMQ's Erlang client allows.
CLIENT_HANDSHAKE_MS = 60_000
# The time to wait for connection.close-ok, as RabbitMQ's shovels and federation links do.
CLIENT_CLOSING_MS = 10_000
# Heartbeats of links, unless the URI has others, as with RabbitMQ's shovels and links: with the minute that
# brokers propose, a network that drops everything would be noticed after two to three minutes.
LINK_HEARTBEAT_S = 10
# The shortest pause before a link tries again: a broker that is restarted is back after some seconds.
LINK_RECONNECT_MIN_MS = 1_000
# The longest one, to which it is doubled: a broker that is down costs nothing, and nobody has to wait long.
LINK_RECONNECT_MAX_MS = 30_000
# Failed attempts in a row after which a fixed `reconnect-delay` is doubled as well, up to the longest pause:
# a broker that is restarted is back before.
LINK_FIXED_DELAYS_MAX = 10
# First attempts of links of a node in a second: a policy for a thousand exchanges has its links in seconds.
LINK_ATTEMPTS_PER_S = 400
# The same at a time: clients have turns between them.
LINK_ATTEMPTS_MAX = 200
# Attempts after a failure in a second: 2,000 links that tried each second took four fifths of a core, and a
# hundred links are still all tried every 5 seconds.
LINK_RETRIES_PER_S = 20
# The same at a time: an attempt to a host that does not answer lasts a minute, and has a socket.
LINK_RETRIES_MAX = 100
# Different errors of one link that are logged until it works again: each of its addresses can have its own.
LINK_ERRORS_LOGGED_MAX = 8
# The time that a planned stop of a link waits for confirms, so that it duplicates as little as possible.
LINK_SETTLE_MS = 5_000
# The longest `connection_timeout` of a URI: longer ones, such as RabbitMQ's "infinity", end here.
CLIENT_HANDSHAKE_MS_MAX = 600_000
# Files of certificates and keys that a URI names: bundles of all authorities have less than 512 KiB.
CLIENT_TLS_FILE_SIZE_MAX = 4_194_304
# Bindings that a federation link makes at its upstream before it waits for an answer: few round trips for
# many bindings, and little that waits in the outbox.
BINDINGS_UNANSWERED_MAX = 100
# How often a federation link asks its upstream for the internal exchange: RabbitMQ's default.
INTERNAL_EXCHANGE_CHECKED_MS = 30_000
# Former names of the cluster whose queues a link empties and deletes; older ones are forgotten. Renames are
# rare, and a link that cannot connect keeps them in memory.
FORMER_CLUSTER_NAMES_MAX = 10
# How often it looks whether such a queue is empty: a pause that nobody notices, and few requests.
FORMER_QUEUE_CHECKED_MS = 1_000
# Links of federated exchanges of a node, and as many of federated queues: each has a socket, and a policy can
# apply to a million exchanges or queues.
FEDERATION_LINKS_MAX = 10_000
# Publishes of a link that may be unconfirmed, also if its prefetch is 0, which AMQP does not limit: the
# largest prefetch that AMQP can express.
LINK_UNCONFIRMED_MAX = 65_535
# One read of the connection of a link while other clients send: 64 KiB at both of its ends would keep them
# waiting for half a millisecond, and links are not in a hurry.
LINK_READ_SIZE_SHARED = 16_384
# Deliveries that a link acknowledges in one turn: the source delivers as many at once in return, and all
# together, up to the prefetch, would keep other clients waiting for milliseconds.
LINK_SETTLED_RUN_MAX = 256
# The same while other clients send.
LINK_SETTLED_RUN_SHARED_MAX = 32
# How long after a client has sent something links take short turns: one that sends a few hundred times in a
# second always finds them short, and one that asks now and then does not slow links down.
LINK_SHARED_MS = 5
# What new properties of one message count as, in frames of WORK_PER_TURN_MAX: decoding and encoding
# them takes some 5 to 15 µs, so that a read of small messages that are all different would take a turn of
# milliseconds.
LINK_TRANSFORM_WORK = 15
# The shortest pause after a destination has refused messages: a full queue may be drained by its consumers.
REFUSAL_PAUSE_MIN_MS = 100
# The longest one, to which it is doubled while nothing is accepted: a full queue costs two messages a minute.
REFUSAL_PAUSE_MAX_MS = 30_000

# Entries of `x-shovelled`, the newest ones: shovels that send messages round add one with each pass, and a
# message would grow to the size of a frame.
SHOVELLED_ENTRIES_MAX = 32

# --- definitions of shovels and upstreams ---
# The longest time between two attempts to connect, a day: a longer one is meant as never.
RECONNECT_DELAY_S_MAX = 86_400
# Unacknowledged deliveries that basic.qos can express: a short (0-9-1 §1.8.3.3).
PREFETCH_COUNT_MAX = 65_535
# Brokers that a message may pass, and ms in arguments of queues: what a signed long can express in tables of
# every client.
LINK_NUMBER_MAX = 2**31 - 1
# Messages that a shovel moves before it is deleted, or in a second: what counters of 64 bits express.
LINK_MESSAGES_MAX = 2**63 - 1
# Seconds after which a shovel is deleted, at most 136 years: in milliseconds, what a timer can wait for.
SHOVEL_DURATION_S_MAX = 2**32 - 1
# Addresses of one end of a shovel, or of an upstream, which are tried in turn.
URIS_MAX = 100
# Upstreams of a set: each is a link for each exchange and queue that the set applies to.
UPSTREAM_SET_SIZE_MAX = 1_000
# How often a link asks its source for the number of ready messages: as often as statistics are shown.
SOURCE_COUNTED_MS = 5_000

# --- advanced.config ---
# Characters of the file; a hundred static shovels have 100,000.
CONFIG_TERMS_SIZE_MAX = 1_048_576
# Levels of lists and tuples in it, which are read by recursion; shovels with nested tables have about 15.
CONFIG_TERMS_DEPTH_MAX = 64

# --- shovels that deliver exactly once ---
# Starts of the broker whose messages one priority level of a queue can still hold: 16 bytes each, in memory
# and in the log. Beyond it the oldest ones count as a later one, which can only make duplicates.
POSITION_STARTS_MAX = 64
# Ranges of positions that a destination remembers for one source queue: one if all its messages come in order
# through one link, and more if other consumers take some. Beyond it the lower half is forgotten, which can
# only make duplicates; it is a usual prefetch, and a source delivers nothing below that again.
POSITION_RANGES_MAX = 2_048
# Source queues whose positions a virtual host remembers: at most 34 kB each in memory, usually 100 bytes.
# Beyond it the one that was unused for the longest time is forgotten.
POSITION_SOURCES_MAX = 4_000
# Those of one user, so that no user can displace those of all others.
POSITION_SOURCES_OF_USER_MAX = 2_000
# Time after the last publish at which a source queue is forgotten (ms): 90 days, as for staged queries.
POSITION_SOURCE_AGE_MS_MAX = 7_776_000_000
# Publishes that are stored as one group: more than one read usually has.
POSITIONED_GROUP_MAX = 1_000
# Their bytes: little beside a segment, which a group does not exceed.
POSITIONED_GROUP_SIZE_MAX = 1_048_576
