"""Every bound in one place, each with its reason. Sizes are in bytes unless the name says otherwise."""

# --- wire ---------------------------------------------------------------------------------------
# The smallest frame-max that a client may negotiate: 0-9-1 §4.2.3 (frame-min-size).
FRAME_SIZE_MIN = 4096
# The frame-max proposed in connection.tune: RabbitMQ's default, with which clients are tested.
FRAME_SIZE_MAX = 131_072
# Frame size before connection.tune-ok, from an unauthenticated client: frame-min-size, as in RabbitMQ 3.10.8.
FRAME_SIZE_HANDSHAKE = 4096
# Bytes of a frame beside its payload: type, channel, size and frame-end.
FRAME_OVERHEAD = 8
# Nesting of field tables. RabbitMQ accepts 14,000 levels; no client needs ten, and the decoder is recursive.
TABLE_DEPTH_MAX = 64
# RabbitMQ 3.10's max_message_size; checked when the header arrives, before any of the body is stored.
MESSAGE_SIZE_MAX = 134_217_728

# --- connections --------------------------------------------------------------------------------
# Channels of one connection that are open at once; channel numbers go up to 65535.
CHANNELS_MAX = 2047
# Duration of each phase of the handshake, as measured on RabbitMQ 3.10.8.
HANDSHAKE_MS = 10_000
# Delay before the socket of a refused login is closed, for clients without authentication_failure_close.
REFUSAL_DELAY_MS = 3_000
# Seconds proposed in connection.tune.
HEARTBEAT_S = 60
# Time that a closed socket waits for the client to close it, so that a reset does not discard the last frame.
LINGER_MS = 1_000
# Time for a TLS handshake, as RabbitMQ's ssl_handshake_timeout.
TLS_HANDSHAKE_MS = 5_000
# Incomplete handshakes from one address: enough for all clients behind one gateway to reconnect at once.
# Loopback addresses are exempt.
HALF_OPEN_PER_ADDRESS_MAX = 4_096
# A PROXY header of version 1, with its line end (specification §2.1).
PROXY_V1_SIZE_MAX = 107
# A PROXY header of version 2 without its fixed part: enough for certificates in its TLVs.
PROXY_V2_SIZE_MAX = 4_096
# Bytes read from a socket at once and processed in one turn: some 80 µs of messages of 1 KiB. With half of
# it, fewer messages share a sync, and twenty connections cost a tenth more.
READ_SIZE_MAX = 65_536
# Bytes read at once if no other client has sent anything for a while: fewer turns cost less.
READ_SIZE_ALONE_MAX = 131_072
# A client that reads nothing for this long while data wait for it is disconnected; in RabbitMQ 3.10.8, 30 s.
SEND_TIMEOUT_MS = 15_000
# The send timeout of stream clients, which may stop reading while they work; RabbitMQ has none.
STREAM_SEND_TIMEOUT_MS = 60_000
# Bytes waiting to be sent to a client, above which its consumers get no more deliveries.
OUTBOX_SIZE_MAX = 262_144

# --- names --------------------------------------------------------------------------------------
# A short string: 0-9-1 §4.2.5.3.
NAME_SIZE_MAX = 255

# --- routing ------------------------------------------------------------------------------------
# Routes cached by the router of a vhost, by exchange and routing key: some 250 bytes each, 64 MB in all.
# Twice 100,000, so that publishing to that many queues in turn is as fast as publishing to one.
ROUTES_CACHED_MAX = 262_144
# Destinations in all cached routes together: a fanout to 100,000 queues is not cached for each key.
ROUTE_DESTINATIONS_CACHED_MAX = 1_048_576
# Nodes of a topic exchange's trie visited for a key: a millisecond; then all patterns are matched at once.
TOPIC_NODES_VISITED_MAX = 4_096
# Bindings explained in one turn of a route trace: a millisecond at most.
EXPLAINED_PER_TURN = 128
# Matching bindings listed for each queue of a route trace.
TRACED_BINDINGS_MAX = 10
# Queues listed in a route trace, each with a forecast: a fanout may reach a hundred thousand.
TRACED_QUEUES_MAX = 1_000
# Bindings listed in a route trace that do not match, the most similar ones.
TRACED_MISSES_MAX = 1_000
# Weight of a binding: 65,536 slots cannot represent proportions beyond a million to one.
CONSISTENT_HASH_WEIGHT_MAX = 1_000_000

# --- arguments ----------------------------------------------------------------------------------
# Ten years: the longest x-message-ttl and x-expires that RabbitMQ accepts.
EXPIRY_MS_MAX = 315_360_000_000
# Deliveries that come back, before a message of a quorum queue without x-delivery-limit is dead-lettered
# (RabbitMQ 4), so that a message that crashes its consumers does not do so for ever. -1 means no limit.
DELIVERY_LIMIT_DEFAULT = 20
# x-max-priority: the property priority has one byte.
PRIORITY_MAX = 255
# Pairs of queue and reason in x-death, beyond which a message is dropped. RabbitMQ has no bound, but cubic
# time: a chain of 1,000 queues takes over a minute. Here the time is quadratic, and this number, processed in
# one turn, takes about a second.
DEATHS_MAX = 500

# Deaths before its redrives that a message keeps in a header: all headers must fit into a frame.
PAST_DEATHS_MAX = 50

# --- moving -------------------------------------------------------------------------------------
# Unconfirmed messages of a move: enough for many of them to share a sync.
MOVES_IN_FLIGHT_MAX = 1_024
# Bytes of the bodies of unconfirmed messages of a move, except for a single larger message.
MOVES_IN_FLIGHT_SIZE_MAX = 4_194_304
# Messages of a queue that are examined, and moved, in one turn: a millisecond.
SCANNED_PER_TURN = 32
# Bytes of examined messages that are read from disk at once, except for a single larger message.
SCAN_READ_SIZE_MAX = 1_048_576
# Messages of one redrive that can be undone, 8 bytes each: 2 MB.
UNDO_MESSAGES_MAX = 250_000
# Destinations that a preview lists separately.
PREVIEW_DESTINATIONS_MAX = 100
# Reasons why messages cannot be moved that are counted separately.
PREVIEW_REASONS_MAX = 32
# Positions of messages listed for each of these reasons.
PREVIEW_MESSAGES_MAX = 10
# Messages that a move can select by position, as from the list on a page.
SELECTED_MESSAGES_MAX = 1_000
# Causes of dead letters that are counted separately in one queue, since clients could invent many.
DEAD_LETTER_CAUSES_MAX = 100
# Routing keys listed for each cause.
CAUSE_KEYS_MAX = 10
# Bindings and queues examined in one turn to find the targets of dead-letter exchanges.
REACHED_PER_TURN = 256

# --- access -------------------------------------------------------------------------------------
# Steps of PCRE2 in a match that is not counted: some 20 µs, many times what a harmless pattern takes.
PATTERN_STEPS_MAX = 4_000
PATTERN_HEAP_KIB = 1_024  # Memory of a match: more than such steps use.
# Steps of a retry of a pattern, some 500 µs; with the number of retries they bound the cost of a pattern.
PATTERN_SLOW_STEPS_MAX = 100_000
# Retries of a pattern that were not earned back by fast matches.
PATTERN_SLOW_MAX = 50
# Characters of a new pattern, with its repetitions expanded: 50 ms and 1 MiB to compile.
PATTERN_SIZE_MAX = 4_096
# Characters of a pattern that is stored already, or made from the scopes of a token.
PATTERN_KEPT_SIZE_MAX = 65_536
# Nesting of groups in a pattern: compiling it is recursive.
PATTERN_DEPTH_MAX = 100
# Characters of a name, and so of a repetition of one character.
PATTERN_TEXT_MAX = 255
# Time for the pattern that filters a list, for all names of the list together.
PATTERN_TIME_S = 0.05
# Results of permission checks that a channel caches; RabbitMQ caches 12.
PERMISSIONS_CACHED_MAX = 64
# Memory of a new argon2id hash: OWASP's recommendation for two passes and one lane, some 30 ms of one core.
ARGON2_MEMORY_KIB = 19_456
# Passes over the memory for a new argon2id hash.
ARGON2_PASSES = 2
# Memory of an imported argon2id hash: RFC 9106's second recommendation.
ARGON2_MEMORY_KIB_MAX = 65_536
# Passes of an imported hash: some half a second with the maximum of memory.
ARGON2_PASSES_MAX = 10
# Lanes of an imported hash: each is a thread while it is computed.
ARGON2_LANES_MAX = 8
# Threads that verify passwords: two of the largest hashes take 128 MiB, and most machines have two cores.
PASSWORD_THREADS = 2
# Verifications that wait for a thread: some 30 s of work for one core.
PASSWORDS_WAITING_MAX = 1_024
# How long a verified password is cached (ms): clients over HTTP send it with each request.
PASSWORD_CACHE_MS = 300_000
# Users whose credentials are cached: some 200 bytes each.
CACHED_CREDENTIALS_MAX = 65_536
# Failed logins without a delay: people mistype, and a deployment may contain a few wrong passwords.
LOGIN_FAILURES_FREE = 10
# The first delay; it doubles with each failure.
LOGIN_DELAY_MS = 100
# The longest delay: clients give up after some 10 s.
LOGIN_DELAY_MS_MAX = 5_000
# The longest delay because of a user name alone, since the user may log in from a new address.
LOGIN_NAME_DELAY_MS_MAX = 2_000
# How far ahead attempts from one address are scheduled; a client would not wait longer.
LOGIN_WAIT_MS_MAX = 10_000
# Half-life of a failed login: the longest delay persists during an attack, and ends minutes after it.
LOGIN_FAILURE_HALF_LIFE_MS = 60_000
# How long a user is known at an address after a login: from one working day to the next.
LOGIN_KNOWN_MS = 86_400_000
# Entries of each of the four tables of failures (addresses, names, pairs), some 300 bytes each: 20 MB.
LOGIN_ADDRESSES_MAX = 16_384
# Size of an OAuth 2 token: what fits into an HTTP header, and more than a handshake frame.
TOKEN_SIZE_MAX = 16_384
# Scopes of one token: each is a pattern, and all are evaluated for a topic.
TOKEN_SCOPES_MAX = 512
# Tolerated clock skew for the start of a token's validity; there is none for its expiry.
TOKEN_SKEW_MS = 10_000
# The life of a token without an expiry, in seconds: who has found one may use it for a day at most.
TOKEN_LIFETIME_S = 86_400
# Keys of a key server, which publishes the present and the previous ones.
KEY_SET_KEYS_MAX = 100
# Size of a key server's response: a hundred keys of 4,096 bits with their certificates.
KEY_SET_SIZE_MAX = 1_048_576
# Timeout of a request to a key server: a login waits for it.
KEY_SET_TIMEOUT_MS = 5_000
# Minimum interval between requests to a key server, since anyone can send a token with an unknown key.
KEY_SET_INTERVAL_MS = 10_000
# Timeout of all requests to a directory for one login together: a client waits no longer.
LDAP_TIMEOUT_MS = 5_000
# Connections to LDAP servers: each login uses one for some milliseconds.
LDAP_CONNECTIONS_MAX = 16
# How long an idle connection to the directory is kept: most directories close it after some minutes.
LDAP_IDLE_MS = 60_000
# Logins that wait for a connection: some seconds of work.
LDAP_WAITING_MAX = 1_024
# How long an LDAP server that did not respond is tried last.
LDAP_RETRY_MS = 10_000
# Groups of one user; with more, the login is refused, since any of them could be the relevant one.
LDAP_GROUPS_MAX = 1_000
# A message of an LDAP server: the name of an entry, or an error.
LDAP_MESSAGE_SIZE_MAX = 65_536
# How long a response of the directory is cached, as in RabbitMQ's cache.
LDAP_CACHE_MS = 15_000
# --- publishing ---------------------------------------------------------------------------------
# Addresses (exchange and routing key) whose permission a channel caches; beyond it, the cache is cleared.
PUBLISHER_ADDRESSES_MAX = 1024
# Bytes of frames of a connection that wait for a slow operation or an alarm, above which it is not read; and
# of publishes that wait for credit, since what is held is copied again and leaves the processor's cache.
HELD_FRAMES_SIZE_MAX, HELD_FOR_CREDIT_SIZE_MAX = 1_048_576, 65_536
# Bytes of them, above which no connection with held frames is read: 1,000 publishers hold 100 MB.
HELD_FRAMES_TOTAL_SIZE_MAX = 67_108_864
# Bytes of held frames that are decoded at once: first after a resume, as one may block again, and at most.
HELD_PIECE_SIZE, HELD_PIECE_SIZE_MAX = 4_096, 65_536

# --- consuming ----------------------------------------------------------------------------------
# RabbitMQ's default consumer_timeout: how long a delivery may stay unacknowledged.
CONSUMER_TIMEOUT_MS = 1_800_000
# Time for the peer of a closed connection to respond with connection.close-ok, as in RabbitMQ.
CLOSING_MS = 30_000
# Time until a peer with malformed frames is disconnected: its close-ok may not be recognisable.
BROKEN_CLOSING_MS = 1_000
# Interval of the check of the consumer timeout, or a quarter of the timeout if that is less.
CONSUMER_TIMEOUT_CHECK_MS = 60_000
# The latest timed out deliveries of one channel that may be acknowledged late: twice this, 200 bytes each.
LATE_ACKNOWLEDGEMENTS_MAX = 2_048
# Consumers of one channel: each takes 700 bytes, and resuming examines all. Clients have hundreds at most.
CHANNEL_CONSUMERS_MAX = 10_000
# Consumers of one queue: the time to list them or to delete the queue grows with their number.
QUEUE_CONSUMERS_MAX = 50_000
# Between log messages of a virtual host about delivery limits: a client that requeues all would fill the log.
LOST_DEAD_LETTERS_LOG_MS = 60_000
# Changes of the TTL that are recorded for older messages of one queue and priority level; beyond it, the two
# oldest are merged into the longer one. Only policies cause them.
TTL_CHANGES_MAX = 64

# --- fairness -----------------------------------------------------------------------------------
# Frames of one connection that are processed in one turn: some 100 µs of small messages. Each copy of a
# message, each message dropped from a full queue and each settled delivery counts as one more.
WORK_PER_TURN_MAX = 500
# Frames processed in one turn if no other client has sent anything for a while.
WORK_SOLE_CLIENT_MAX = 1_600
# How long no other client may have sent anything for that.
SOLE_CLIENT_AFTER_MS = 100
# The cost of any other method, in frames of messages.
METHOD_WORK = 60
# The cost of a declaration or a step of a handshake: a turn's work.
DECLARATION_WORK = 1_600
# Queues and bindings removed in one turn with their connection or virtual host: some 300 µs.
REMOVED_PER_TURN = 32
# Exchanges, queues and bindings created in one turn at the start of a virtual host: some 300 µs.
RECOVERED_PER_TURN = 16
# Queues matched against changed policies in one turn: some 300 µs.
POLICIES_PER_TURN = 16
# Connections closed in one turn after their user or virtual host was deleted.
CLOSED_PER_TURN = 8
# Channels of a connection that ends that one turn releases: 0.5 to 1 ms.
CHANNELS_RELEASED_PER_TURN = 64

# --- memory ---------------------------------------------------------------------------------------
# Long-lived objects that are added before all are searched for reference cycles: a pause of some 100 ms, and
# the memory that garbage cycles among them take until then.
COLLECTION_OBJECTS_MIN = 1_000_000

# --- flow ---------------------------------------------------------------------------------------
# The assumed maximum rate (bytes per ms) at which memory or disk space is used up, which determines when they
# are measured next. Large messages arrived at 700 MB/s; RabbitMQ assumes a quarter of this.
LEVEL_CHANGE_PER_MS_MAX = 1_000_000
# The shortest interval of measurements, near a threshold: a measurement takes some 20 µs.
LEVEL_CHECK_MS_MIN = 100
# The longest interval between measurements of memory, as in RabbitMQ.
MEMORY_CHECK_MS_MAX = 2_500
# The longest interval between measurements of free disk space.
DISK_CHECK_MS_MAX = 10_000
# Interval at which free memory is returned to the system during a memory alarm; it uses a core meanwhile.
TRIM_MS = 1_000

# How long a connection is shown in the state `flow` after it was blocked by the disk, as in RabbitMQ.
FLOW_SHOWN_MS = 5_000

# --- store --------------------------------------------------------------------------------------
# Bytes that a store has not passed to its disk yet, above which publishers wait; as much again is being
# written meanwhile. Larger batches are not cheaper per byte, and delay their confirms.
STORE_PENDING_SIZE_MAX = 16_777_216
# Memory of a pending message beside its content.
PENDING_MESSAGE_SIZE = 256
# Memory of a pending message for each queue after the first.
PENDING_REFERENCE_SIZE = 64
# Size up to which a content is copied into its record (1,032 bytes), whose memory the C library caches then.
CONTENT_COPIED_MAX = 900
# Messages on disk discarded in one turn of a purge: ten million would block the node for a second.
DISCARDED_PER_BATCH = 20_000
# Bytes of a segment file, as RabbitMQ's msg_store_file_size_limit; a larger message gets a file for itself.
SEGMENT_SIZE = 16_777_216
# Files kept for reuse: this much disk space is not freed, and four new segments in a row create no file.
SPARE_SEGMENTS_MAX = 4
# Failed reads of a segment before the rest is read in large pieces only: a device may retry each for seconds.
# Enough for some twenty bad sectors.
SALVAGE_FAILURES_MAX = 256
# Bytes checked as possible records in the search for an intact record after a damaged one: a second of work
# at most, even if bodies were crafted to look like records.
SALVAGE_SEARCH_SIZE_MAX = 1_073_741_824
# Losses of messages on record, acknowledged or not: the newest ones.
LOSSES_MAX = 1_000
# Queues listed for each file in the catalog, in case the file is lost: as many as fit into its slot.
CATALOG_QUEUES_MAX = 17
# Positions by which the recorded delivered position of a busy queue is ahead: the write is negligible for
# this many deliveries, and after a kill at most this many messages are wrongly marked as redelivered.
DELIVERED_AHEAD_MAX = 4_096
# The lead that remains for a queue with one delivery in each batch, as with consumers that take turns.
DELIVERED_AHEAD_KEPT = 8
# Bytes of dead segments that are freed for each byte of state rewritten for that. Otherwise a queue with
# every second of a million messages settled would fill segments with its state as fast as they are freed.
COMPACTION_GAIN_MIN = 4
# Bytes of a segment read at once by compaction: a fraction of a millisecond of the loop.
COMPACTION_READ_SIZE = 131_072
# Pieces read before a batch if they contain no live message.
COMPACTION_READS_PER_BATCH = 4
# Dead segments tolerated beside as many bytes as are live: ordered consumption needs no compaction.
COMPACTION_SLACK_SEGMENTS = 4
# A record of released positions: one allocation when it is read.
STATE_RECORD_SIZE_MAX = 1_048_576

# --- staged -------------------------------------------------------------------------------------
# Rows of a stage that are written and read together; a stream appends them together, with one sync.
STAGED_CHUNK_ROWS_MAX = 2_048
# Bytes of the bodies of these rows, except for a single larger row.
STAGED_CHUNK_SIZE = 262_144
# Rows published in one turn as one atomic group of the log: some milliseconds.
STAGED_ROWS_PER_SLICE = 256
# Bytes of a stage read at once by the thread that publishes it.
STAGED_READ_SIZE = 4_194_304
# Bytes of a stage after which it is synced while it is received, since stores sync to the same device.
STAGED_SYNC_SIZE = 16_777_216
# Rows of one stage, which is one partition: larger ones must be split into more partitions.
STAGE_ROWS_MAX = 10_000_000
# Bytes of the file of one stage.
STAGE_SIZE_MAX = 2_147_483_648
# Bytes of all stages of a node: a part of a large disk; on a small one the disk alarm is the limit.
STAGED_SIZE_MAX = 34_359_738_368
# Number of all stages of a node: a kilobyte of memory each.
STAGED_COUNT_MAX = 20_000
# Partitions of one commit: its plan is one file, written at once.
STAGED_PARTITIONS_MAX = 10_000
# How long a stage is kept without a commit (ms): a day, after which no driver retries.
STAGED_AGE_MS_MAX = 86_400_000
# Bytes of one batch of an Arrow stream, compressed or not: a batch is in memory as a whole.
STAGED_BATCH_SIZE_MAX = 67_108_864
# Bytes of the metadata of such a batch, or of the schema.
STAGED_METADATA_SIZE_MAX = 1_048_576
# Stages received at once: each has a batch in memory twice; others wait.
STAGED_AT_ONCE_MAX = 4
# Timeout for the next piece of such a batch (s): a client that hangs delays others.
STAGED_IDLE_S = 30.0
# Rows converted by a thread before other work of it may run.
STAGED_ROWS_PER_TURN = 128
# Unconfirmed slices of a batch: enough for several to share a sync.
STAGED_SLICES_MAX = 8
# Bits of the number of a row in its batch, by which streams deduplicate rows: more than all stages can
# contain. The rest of 64 bits is the number of the batch.
STAGED_ROW_BITS = 34
# How long the request for a commit waits for its end (s) before it responds with the progress.
STAGED_COMMIT_S = 20.0
# Queries of a virtual host whose last batch is recorded: some 200 bytes each, in memory and in the log.
STAGED_QUERIES_MAX = 10_000
# Such queries of one user, so that no user can displace those of all others.
STAGED_QUERIES_OF_USER_MAX = 5_000
# Time after its last commit at which a query is forgotten (ms): 90 days.
STAGED_QUERY_AGE_MS_MAX = 7_776_000_000
# Time during which a query is not displaced by a new one (ms): a day.
STAGED_QUERY_AGE_MS_MIN = 86_400_000

# --- streams ------------------------------------------------------------------------------------
# Bytes of the files of a stream: RabbitMQ's default of x-stream-max-segment-size-bytes.
STREAM_SEGMENT_SIZE = 500_000_000
# The largest segment size, as in RabbitMQ: retention deletes whole files, so this much is kept too long.
STREAM_SEGMENT_SIZE_MAX = 3_000_000_000
# Bytes of messages written as one chunk, which a reader gets as a whole.
STREAM_CHUNK_SIZE = 131_072
# Bytes between two chunks in the index of a segment: 24 bytes of memory for each.
STREAM_INDEX_STEP = 131_072
# Bytes of a file that are read at once.
STREAM_BLOCK_SIZE = 262_144
# Bytes read at once for a reader of columns: four full chunks, kept in memory while their rows are sent.
STREAM_READ_AHEAD_SIZE = 540_672
# Bytes of cached chunks of all streams of a virtual host, for readers at the same place: some 120 chunks, so
# that a hundred readers at different places each hit the cache.
STREAM_CACHE_SIZE = 16_777_216
# Messages that a stream delivers or skips in one turn: some milliseconds.
STREAM_WORK_PER_TURN_MAX = 2_000
# The cost, in messages, of reading a chunk that a filter may skip: a quarter of a millisecond from disk, and
# more for each shape of its messages.
STREAM_CHUNK_WORK = 200
# Bits of the Bloom filter of a chunk, two for each filter value: the false positive rate is 1 in 7 with 500
# values, 1 in 400 with 50. Twice RabbitMQ's maximum.
STREAM_BLOOM_BITS = 2_048
# Bloom filters of runs of chunks cached for a virtual host: 2 GiB of full chunks if all differ, in 16 MiB.
STREAM_BLOOM_FILTERS_MAX = 16_384
# Damaged places of streams that are logged: each reader meets them again.
STREAM_DAMAGE_LOGGED_MAX = 100
# Producers whose last sequence a stream stores, the most recent ones: some 50 bytes each, written once to
# each file.
STREAM_PRODUCERS_MAX = 1_000
# Consumers whose offset a stream stores.
STREAM_CONSUMERS_MAX = 1_000
# Bytes that are zeroed ahead of small batches.
STREAM_PREALLOCATION_SIZE = 65_536

# --- stream protocol ------------------------------------------------------------------------------
# Time for a client to respond to consumer_update, as in RabbitMQ 3.11 and later: its group waits meanwhile,
# then the connection is closed.
STREAM_ANSWER_MS = 60_000
# Uncompressed size of a sub-entry batch: a kilobyte may decompress to a megabyte.
STREAM_BATCH_SIZE_MAX = 16_777_216
# Bytes of an AMQP 1.0 message before its body: decoded as a whole, and possibly kept in a header.
STREAM_HEAD_SIZE_MAX = 131_072
# Frame size proposed to stream clients, as in RabbitMQ: a publish of many messages is one frame.
STREAM_FRAME_SIZE_MAX = 1_048_576
# Frame size accepted regardless of the negotiated one: that of an uncompressed sub-entry batch.
STREAM_FRAME_ACCEPTED_MAX = STREAM_BATCH_SIZE_MAX
# Frame size before a stream connection is open: credentials and client properties.
STREAM_FRAME_SIZE_HANDSHAKE = 65_536
# Unconfirmed messages of a connection, above which it is not read, as in RabbitMQ.
STREAM_UNCONFIRMED_MAX = 50_000
# Bytes of the reference of a producer or consumer, which a stream stores (RabbitMQ's protocol allows 256).
STREAM_REFERENCE_SIZE_MAX = 255
# Bytes of the filter value of a message, which is a header: as in RabbitMQ.
STREAM_FILTER_SIZE_MAX = 255
# Filter values of one subscription: each chunk is matched against all of them.
STREAM_FILTERS_MAX = 1_000
# Streams in one metadata request or super stream: each is looked up, or declared.
STREAM_NAMES_MAX = 1_000
# Credit, in chunks, that a subscription can accumulate: no client reads ahead further.
STREAM_CREDIT_MAX = 65_535
# Encoded chunks cached for readers at the same place: some 128 KiB each.
STREAM_ENCODED_CHUNKS_MAX = 16
# Converted message heads that a connection caches: most clients send the same one repeatedly.
STREAM_HEADS_CACHED_MAX = 64

# --- supervision --------------------------------------------------------------------------------
# Restarts of a failed virtual host; at the fourth failure within five minutes it stays down.
VHOST_RESTARTS_MAX = 3
# The window in which restarts are counted. A failure once an hour needs attention, but not a stop.
VHOST_WINDOW_MS = 300_000
# Delay before the first, second and third restart: a disk may need a moment to recover.
VHOST_PAUSES_MS = (0, 500, 2_000)
# Interval at which an automatic deletion of a queue is retried if it cannot be written.
REMOVAL_RETRY_MS = 2_000
# Bytes of ready messages of one queue in memory, with 128 for each message beside its body, if the queue can
# page. The others are read from disk, a microsecond for each small message.
QUEUE_MEMORY_MAX = 16_777_216
# How often that limit is halved as memory runs low: at last 4 KiB a queue, 400 MB for a hundred thousand.
QUEUE_MEMORY_STEPS = 12
# Queues that reduce their memory in one turn after the limit was lowered: most have nothing to release.
QUEUES_SHRUNK_PER_TURN = 8
# Bytes of paged messages read at once: more would take long turns, less would need more system calls.
READ_AHEAD_SIZE = 131_072
# Bytes read for a message that does not follow the previous one: most messages fit.
RANDOM_READ_SIZE = 4_096
# Bytes between two messages of a queue that are read along with them.
READ_GAP_MAX = 8_192
# Locations in a block of the index of paged messages, 8 bytes each.
PAGED_BLOCK_SIZE = 1_024
# Settled positions that such a block skips; a new block takes as much memory as some 25 locations.
PAGED_GAP_MAX = 32

# Records processed at once when a store is opened: a millisecond, during which the loop cannot run.
SCANNED_AT_ONCE = 1_000

# --- leases -------------------------------------------------------------------------------------
# Messages of one lease, some 200 bytes of memory each while they are on disk. A micro-batch of Spark is one
# lease and costs a second of CPU beside its rows, which larger ones share.
LEASE_MESSAGES_MAX = 500_000
# Messages of all leases of one virtual host, some 200 bytes of memory each: 1.3 GB.
LEASED_MESSAGES_MAX = 6_400_000
# Ranges of positions of one lease, which are one entry of the metadata log: a queue with every second message
# settled has one range for each message.
LEASE_RANGES_MAX = 50_000
# And bytes of them: what is not on the disk is in memory for as long as somebody has it.
LEASE_BYTES_MAX = 134_217_728
# Active leases of one virtual host, and ended ones whose acknowledgements are not on disk yet.
LEASES_MAX = 64
# Ended leases on record, so that a repeated request gets the same response and acknowledgements survive a
# crash. More than can lack their acknowledgements on disk.
LEASES_ENDED_MAX = 256
# The longest lease: a day; it can be renewed.
LEASE_TTL_S_MAX = 86_400
# The default duration of a lease.
LEASE_TTL_S = 300
# Bytes of the idempotency key of a lease.
LEASE_KEY_SIZE_MAX = 1_024
# Messages leased, read or settled in one turn: half a millisecond.
LEASED_PER_TURN = 512

# --- journal ------------------------------------------------------------------------------------
# Size of the metadata log at which it is rewritten as a snapshot, unless the metadata are larger: a start
# reads at most this much for nothing.
JOURNAL_LOG_SIZE_MIN = 1_048_576
# Bytes of the log that are zeroed ahead: overwriting zeros syncs in half the time of growing.
JOURNAL_PREALLOCATION_SIZE = 65_536
# Bytes of the snapshot that are encoded at once, and lost by a flipped bit.
JOURNAL_CHUNK_SIZE = 16_384
# Exchanges, queues or bindings in one entry of the snapshot: some 16 KiB with short names.
JOURNAL_ROWS_MAX = 256
# Interval at which the high-water mark is synced: a sync for each change would halve the rate.
JOURNAL_MARK_SYNC_MS = 1_000
# Numbers of queues that are not used after a lost end of the log: more than there can be changes in a second,
# and 4,096 times as many exist.
JOURNAL_SKIPPED_NUMBERS = 1 << 20
# Interval at which a failed write of the metadata is retried, each time with the whole state.
JOURNAL_RETRY_MS = 1_000

# --- management ---------------------------------------------------------------------------------
# Records whose column is read, or names compared with a text, in one turn: half a millisecond.
NAMES_PER_TURN = 1_024
# Arguments of bindings with a cached properties key: computing one takes 50 µs, and listings sort by it.
BINDING_KEYS_REMEMBERED = 4_096
# Sort keys compared with two bounds in one turn, to find the items of a page: half a millisecond.
RANKED_PER_TURN = 8_192
# Names matched against a pattern in one turn: 100 µs usually, 20 ms for the worst pattern that is searched
# without a time limit.
PATTERNS_PER_TURN = 128
# Time of a pattern for one name, beside PATTERN_TIME_S for all names: more than a harmless one needs.
PATTERN_NAME_S = 0.00002
# Exchanges, queues or bindings of a document proposed at once: the journal writes them as one batch.
IMPORTED_AT_ONCE = 32
# Objects compared with a document in one turn of an import plan: some 300 µs.
PLANNED_PER_TURN = 32
# Items of a plan that are freed in one turn after the response: some 300 µs.
PLAN_RELEASED_PER_TURN = 512
# Items of a plan in one response, each with its value before and after.
PLANNED_SHOWN_MAX = 1_000
# Unsupported objects of a document named in one response: enough to correct the document at once.
DEFINITIONS_NAMED_MAX = 100
# Conditions that a message is compared with.
CONDITIONS_MAX = 20
# Bytes of a body that conditions examine as text or JSON; a longer one is examined up to here, as text.
MATCHED_BODY_SIZE_MAX = 262_144
# Interval of the samples of counters: RabbitMQ's collect_statistics_interval.
SAMPLE_INTERVAL_MS = 5_000
# How long samples are kept: RabbitMQ's sample_retention_policies, "basic".
SAMPLE_RETENTION_MS = 600_000
# Interval of the samples of virtual hosts and the node that are kept for longer.
SAMPLE_COARSE_STEP_MS = 60_000
# Number of these samples: eight hours, 100 KB for each object.
SAMPLES_COARSE_MAX = 480
# Samples of all objects, some 100 bytes each: 40 MB. With many active objects each has fewer.
SAMPLES_MAX = 400_000
# Samples that each object keeps in any case: a rate needs two.
SAMPLES_OF_ONE_MIN = 2
# Objects sampled in one turn: a millisecond at most.
SAMPLED_PER_TURN = 128
# Samples of a counter in one response, as in RabbitMQ; a page with 500 queues requests them often.
SAMPLES_SHOWN_MAX = 500

# --- reading with Arrow -------------------------------------------------------------------------
# Responses in Arrow format sent at once: each has a chunk or some rows in memory, and uses a part of each
# turn.
ARROW_READERS_MAX = 32
# Approximate memory of a piece of a response while the node is otherwise idle: four thousand rows of 200
# bytes, so that the cost of a batch beside its rows is small. They take a millisecond to encode.
ARROW_PIECE_SIZE = 6_291_456
# Approximate memory of a batch of rows beside its bodies; a chunk usually becomes one batch.
ARROW_BATCH_SIZE_MAX = 4_194_304
# Messages with distinct properties that are decoded in one turn: a millisecond, if the decoder is not
# compiled.
ARROW_DECODED_PER_TURN = 128
# Messages of a queue that are collected in one turn: about as long as decoding them takes.
ARROW_BROWSED_PER_TURN = 256
# Time without progress after which a response ends: other requests wait for its place.
ARROW_STALLED_S_MAX = 60
# Pause after a piece while the node is busy: the shortest time of the loop's timers, and twice what encoding
# and sending a chunk takes.
ARROW_PAUSE_S_MIN = 0.001

# Redrives, moves and undos that run at once: each uses a part of a turn.
JOBS_RUNNING_MAX = 16
# Ended jobs that stay in the list: some kilobytes each.
JOBS_KEPT_MAX = 100
# Positions that all redrives together record for an undo: 8 bytes each.
UNDO_MESSAGES_TOTAL_MAX = 1_000_000
# Interval at which a job that waits for an alarm or a slow disk checks whether it may continue.
JOB_POLL_S = 0.1
# How long a stopping node waits for the unconfirmed messages of its jobs.
JOBS_STOPPING_S = 5.0
# The highest rate of a job, in messages per second, which no job reaches.
JOB_RATE_MAX = 1_000_000
# Messages that the preview of a redrive lists one by one.
PREVIEWED_MAX = 50
# Messages examined for a list of dead letters of all queues: half a second.
DEAD_LETTERS_EXAMINED_MAX = 20_000
# Messages examined in each queue for that list; the list of one queue examines the rest.
DEAD_LETTERS_PER_QUEUE_MAX = 1_000

# --- log ----------------------------------------------------------------------------------------
# Log messages that wait to be written, some 500 bytes each: those of a second of reconnecting clients.
LOG_QUEUE_LENGTH_MAX = 10_000
# How long the end of the process waits for a blocked output of the log.
LOG_STOP_S_MAX = 2
# Characters of a client-provided connection name in a log message.
LOGGED_NAME_LENGTH_MAX = 256

# --- command line -------------------------------------------------------------------------------
# Bytes of a response that the command line reads into memory: definitions of a hundred thousand queues.
CLI_ANSWER_SIZE_MAX = 268_435_456
