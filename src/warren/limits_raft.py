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
# Entries that a leader keeps in memory after a snapshot has replaced them, while a member lacks some: what is
# in flight when a link breaks, and a second of publishes.
RECENT_ENTRIES_MAX = 1_024
# The same in messages, of which eight bytes are kept.
RECENT_MESSAGES_MAX = 65_536
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

# --- traffic between the replicas of groups --------------------------------------------------------------
# The name of a read, which is counted in one byte: the driver's have 24.
READ_CONTEXT_SIZE_MAX = 255
# Positions of one priority level: 48 bits, which a thousand years of a fast publisher do not use.
GROUP_POSITION_MAX = (1 << 48) - 1
# The interval of ticks of groups that are awake: a heartbeat is missed soon, and costs little.
GROUP_TICK_MS = 200
# How often a replica that is to leave its group looks whether the others have removed it. It is longer than a
# session of a link, so that between two looks a leader that has gone is known to be away.
GROUP_LEAVING_MS = 6_000
# Messages that are kept for groups of which this node has not heard yet: votes for as many new queues as some
# clients declare in a second.
GROUP_EARLY_MESSAGES_MAX = 4_096
# Ticks without a leader before an election: 1 s, and up to twice that by chance.
GROUP_ELECTION_TICKS = 5
# Ticks without work after which a group sleeps: 2 s, so that a queue with a message now and then stays awake.
GROUP_SLEEP_TICKS = 10
# The time between two comparisons of the groups that sleep: hardly any difference is ever found.
GROUP_COMPARED_MS = 30_000
# What one payload has: a follower handles it in one turn, within a few milliseconds.
GROUP_PAYLOAD_SIZE = 262_144
# Messages of groups that wait for a link that is full; beyond it they are dropped, and sent again later.
# Those with entries are bounded by what is in flight to each member, and their bodies are not kept for them.
GROUP_HELD_MESSAGES_MAX = 65_536
# Bodies that are read from the disk for the members on one node in a turn of the event loop.
GROUP_READ_SIZE = 262_144
# A part of a larger payload: what a session has under way.
GROUP_PART_SIZE = 4_194_304
# All parts of one payload: the largest message that a setting permits (512 MiB), with its properties.
GROUP_PARTS_SIZE_MAX = 553_648_128
# Groups whose leaders other nodes tell: more than a cluster has queues.
GROUP_LEADERS_MAX = 10_000_000
# Snapshots that a node sends at a time, and that it takes from one other node; others wait.
GROUP_TRANSFERS_MAX = 8
# A chunk of a snapshot: some messages of 1 KiB are read from the disk in a millisecond.
GROUP_CHUNK_SIZE = 262_144
# Rows of a snapshot that one chunk looks at, also if the receiver has their messages.
GROUP_CHUNK_ROWS_MAX = 16_384
# Chunks that were sent and are not synced at the receiver: they hide the time of a sync.
GROUP_CHUNKS_IN_FLIGHT = 8
# What all snapshots that a node sends have in a tick: 60 MB/s, so that other traffic passes beside them.
GROUP_TRANSFER_SIZE_PER_TICK = 12_582_912
# Ticks after which a snapshot is given up of which the receiver asks for nothing more: 30 s, which a disk may
# need for one sync in the worst case.
GROUP_TRANSFER_IDLE_TICKS = 150
