"""Bounds on the number of metadata objects, each with its reason; `limits` has the other bounds.

They are far above the numbers in real deployments: a client that reaches one creates objects without end.
Objects beyond them that a metadata log already contains, from before there were bounds, are kept.
"""

# Policies of a virtual host, and operator policies: a declared name is matched against each, in some 3 µs, or
# in PATTERN_STEPS_MAX if the pattern was made to be slow.
POLICIES_MAX = 1_000
# Policies matched against names in one turn, after a change or when a virtual host starts.
POLICIES_MATCHED_PER_TURN = 128
# Queues of a virtual host without a lower `max-queues`, some kilobytes each; 100,000 are fast.
QUEUES_MAX = 1_000_000
# Exchanges of a virtual host.
EXCHANGES_MAX = 1_000_000
# Bindings of a virtual host, some 700 bytes each.
BINDINGS_MAX = 4_000_000
# Exchanges for which a user has topic permissions in a virtual host; the exchanges need not exist.
TOPIC_PERMISSIONS_MAX = 1_000
# Permissions of all users in all virtual hosts: deleting a user or a virtual host examines all of them.
PERMISSIONS_MAX = 250_000
# Users, some 500 bytes each.
USERS_MAX = 250_000
# Virtual hosts, each with its own files and tasks.
VHOSTS_MAX = 10_000
# Parameters of a virtual host, each as large as an HTTP body at most: shovels, upstreams, and sets of them.
PARAMETERS_MAX = 1_000
# Global parameters, each as large as an HTTP body at most.
GLOBAL_PARAMETERS_MAX = 1_000
# Durable queues declared during the life of the metadata: their number has 32 bits in the stores. A thousand
# declarations per second use them up in 50 days.
QUEUE_NUMBERS_MAX = 0xFFFF_FFFF
# The first number of queues that do not survive a restart, which are no numbers in a store: ten thousand per
# second use them up in some million years.
TRANSIENT_NUMBERS_FROM = 1 << 32

# Messages that an `x-recent-history` exchange keeps: a binding is given all of them in one turn, in a few
# milliseconds.
RECENT_HISTORY_LENGTH_MAX = 1_000
# Bytes of their bodies, which are in memory, whatever becomes of the messages in their queues.
RECENT_HISTORY_SIZE_MAX = 16_777_216

# Bytes of `x-name-prefix`, to which a hyphen and 22 characters are added (RabbitMQ 4.4).
NAME_PREFIX_SIZE_MAX = 64
# The largest first offset that a stream can be given; offsets have 63 bits, so enough of them are left.
STREAM_INITIAL_OFFSET_MAX = 10**18

# Bytes of commands that were applied and are not written yet, since nothing of them survives a restart: some
# thousand declarations of reply queues, which a sync follows then.
JOURNAL_UNWRITTEN_SIZE_MAX = 262_144
# Commands that are written with one sync. They are accepted before the first of them is applied, so a limit
# can be exceeded by as many objects.
JOURNAL_BATCH_MAX = 256

# Members of a cluster, each with a connection to every other one; RabbitMQ's have three to seven.
CLUSTER_MEMBERS_MAX = 128
# The highest id of a member, which has 16 bits. An id is not given again: a cluster that replaces a node each
# hour has them for seven years.
MEMBER_ID_MAX = 0xFFFF
# Bytes of the name of a member, and of a host: what the DNS permits, and an AMQP short string.
MEMBER_NAME_SIZE_MAX = 255
# Numbers of runs and feature levels: what signed integers of 64 bits can hold, as in JSON and in Java.
MEMBER_NUMBER_MAX = (1 << 63) - 1
# Bytes of the id of a cluster: random, and as many as a UUID has, so that no two clusters have the same.
CLUSTER_ID_SIZE = 16
# Replicas of a quorum queue: each message is sent to all of them, and what is confirmed is on a majority, so
# that more than seven only cost. More may be needed for a while, when a queue is moved.
QUEUE_MEMBERS_MAX = 16
# Quorum queues that a node which leaves is no member of any more after one command: some 2 ms.
REPLICAS_REMOVED_PER_TURN = 512
# The highest number of a replica, which has 32 bits in the stores: a queue that moves each second has them
# for a century.
REPLICA_NUMBER_MAX = 0xFFFF_FFFF
# TCP ports have 16 bits.
MEMBER_PORT_MAX = 0xFFFF

# --- a group of several members ----------------------------------------------------------------------
# Applied entries that are kept in memory for members that lack them, up to twice as many: what a member
# misses in some seconds without its connection. Who lacks more is sent a snapshot.
METADATA_ENTRIES_KEPT = 1_024
# Proposals of one node that were sent to the leader and are not settled; others wait. A leader needs no more
# to have the next batch complete.
METADATA_FORWARDED_MAX = 1_024
# The interval of the ticks of a member, with each of which a heartbeat comes: what an idle node costs is the
# number of times that it wakes.
METADATA_TICK_MS = 400
# Without a heartbeat for 1.2 s, up to 2 s, a member starts an election.
METADATA_ELECTION_TICKS = 3
# Ticks without an answer after which a proposal or a read is refused, 10 s: RabbitMQ's time for an operation
# of its metadata store.
METADATA_TIMEOUT_TICKS = 25
# The same for a HTTP request, 4.4 s: an operator and a load balancer want an answer, and may repeat it.
METADATA_REQUEST_TICKS = 11
# The same for what a HTTP request waits for after one timeout: its answer is known to be late.
METADATA_REPEATED_TICKS = 1
