"""The bounds of what exists, beside those in `limits`, each with its reason.

They are far beyond what anybody was seen with: whoever reaches one makes things without end. What a log of
the metadata has beyond them, made before there were bounds, stays.
"""

# Policies of a virtual host, and operator policies of it: a name that is declared is held against each, at
# some 3 µs, or at PATTERN_FREE_S if somebody made them slow.
POLICIES_MAX = 1_000
# Policies that are held against names in one turn, when they have changed, or when a virtual host starts.
POLICIES_MATCHED_PER_TURN = 128
# Queues of a virtual host, where no `max-queues` says less, each some kilobytes; 100,000 are fast.
QUEUES_MAX = 1_000_000
# And its exchanges.
EXCHANGES_MAX = 1_000_000
# And its bindings, each some 700 bytes.
BINDINGS_MAX = 4_000_000
# Exchanges for which a user has topic permissions in a virtual host: they need not exist.
TOPIC_PERMISSIONS_MAX = 1_000
# Permissions of all users in all virtual hosts: what goes with a user or a virtual host is looked for in all.
PERMISSIONS_MAX = 250_000
# Users, some 500 bytes each.
USERS_MAX = 250_000
# Virtual hosts, each with files of its own, and tasks that look after them.
VHOSTS_MAX = 10_000
# Parameters of the whole broker, each as large as a body of HTTP.
GLOBAL_PARAMETERS_MAX = 1_000
