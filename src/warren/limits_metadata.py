"""Bounds on the number of metadata objects, each with its reason; `limits` has the other bounds.

They are far above the numbers in real deployments: a client that reaches one creates objects without end.
Objects beyond them that a metadata log already contains, from before there were bounds, are kept.
"""

# Policies of a virtual host, and operator policies: a declared name is matched against each, in some 3 µs, or
# in PATTERN_GRACE_S if the pattern was made to be slow.
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

# Bytes of commands that were applied and are not written yet, since nothing of them survives a restart: some
# thousand declarations of reply queues, which a sync follows then.
JOURNAL_UNWRITTEN_SIZE_MAX = 262_144
# Commands that are written with one sync. They are accepted before the first of them is applied, so a limit
# can be exceeded by as many objects.
JOURNAL_BATCH_MAX = 256
