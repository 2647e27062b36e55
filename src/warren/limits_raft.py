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

# --- the log of a group in a store -------------------------------------------------------------------
# The commands of one entry, which an entry of a busy queue fills to a quarter of this: together with its
# messages it is read and sent as a whole.
GROUP_COMMANDS_SIZE_MAX = 1_048_576
# Runs of positions in one entry: they are counted in two bytes.
GROUP_ENTRY_RUNS_MAX = 65_535
# The entries behind the snapshot of a group, without messages: they are kept in memory, and are written with
# each state of the group, in one record.
GROUP_TAIL_SIZE_MAX = 8_388_608
# The machine in a snapshot: one record, which is written anew each time that its segment is freed.
GROUP_MACHINE_SIZE_MAX = 4_194_304
# The members and learners of a group: a few octets for each of a hundred nodes.
GROUP_CONFIGURATION_SIZE_MAX = 65_536
# The reason for which a replica is not trusted, as it is stored: a line of text.
UNTRUSTED_REASON_SIZE_MAX = 512

# --- quorum queues -----------------------------------------------------------------------------------
# Runs of nodes whose publishes a queue numbers. The leader forgets those that are gone; should it not, the
# one that began first is forgotten beyond this: 100 kB in a snapshot.
QUORUM_ENQUEUERS_MAX = 4_096
# Runs of messages that came back and were not settled, each with the same number of attempts. Messages that
# come back together are few runs, however many they are; this many are 3.8 MB in a snapshot. Beyond it the
# half with the fewest attempts counts from zero again, so that no message is lost for it; holds go last.
QUORUM_RETURNED_RUNS_MAX = 131_072
# The bodies in one entry of a quorum queue, which is sent to a member as a whole: small enough that a slow
# link has the next heartbeat in time. A larger message has an entry of its own.
QUORUM_BATCH_SIZE = 262_144
# The highest level of a quorum queue, which RabbitMQ 4.3 has as well. With 48 bits of each level for
# positions, all places are below 2 to the 53, so that JSON numbers are exact in JavaScript.
QUORUM_PRIORITY_MAX = 31
# A snapshot replaces this many entries of a quorum queue, or bytes of them: they are in memory until then.
GROUP_COMPACTED_ENTRIES = 1_024
# The same in bytes: a STATE repeats what is behind the snapshot each time that its segment is freed.
GROUP_COMPACTED_SIZE = 262_144
# The same in bytes for a group of one, where nobody is sent entries, and none is in memory: some 200 of them,
# which a start reads again. They have at least the size of the state that replaces them, which is written.
GROUP_COMPACTED_SIZE_ALONE = 16_384
# How far ahead of the deliveries the reach of a quorum queue is agreed on: after a failure, at most as many
# messages are called redelivered that were not delivered.
REACH_AHEAD_MIN = 64
# A queue with many unacknowledged messages asks for twice their number, up to this.
REACH_AHEAD_MAX = 4_096
# Damaged records and files of a store of which is recorded that an operator has accepted them, 8 bytes each.
# Others make replicas untrusted again at the next start.
ACCEPTED_DAMAGE_MAX = 65_536

# Dead letters of one queue that were published and that not all targets have confirmed, or that wait for
# another attempt: as many as RabbitMQ's. They share a sync, and a target that takes nothing holds up no more.
DEAD_LETTERS_SENT_MAX = 32
# When dead letters without a target, or that one refused, are published again; RabbitMQ's settle timeout.
DEAD_LETTERS_RETRIED_MS = 180_000
