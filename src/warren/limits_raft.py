"""Every bound of groups that replicate a log, each with its reason. Sizes are in bytes."""

# Replicas that one change of a configuration names: a group has at most a few voters and learners, and a
# change that replaces all of them names each twice.
CHANGE_MEMBERS_MAX = 64

# What an entry counts beside its payload, so that empty entries are bounded as well: about what its fields
# need in memory and on the wire.
ENTRY_OVERHEAD_BYTES = 32
# Entries in one message: a frame of this size is copied and checked in well under a millisecond, and more
# entries than that do not make a sync cheaper.
APPEND_BYTES_MAX = 256 * 1024
# Messages, and bytes in them, that were sent to one member and not answered: enough for 40 ms at 100 MB/s,
# and the most that a member that stops answering costs.
IN_FLIGHT_MESSAGES_MAX = 256
# See above.
IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024
# Payloads that one group has proposed and not committed: what a leader without a majority holds in memory.
UNCOMMITTED_BYTES_MAX = 16 * 1024 * 1024
# Entries that were handed out for applying and are not applied.
APPLYING_BYTES_MAX = 4 * 1024 * 1024
