"""Every bound in one place, each with its reason. Sizes are in bytes unless the name says otherwise."""

# --- wire ---------------------------------------------------------------------------------------
# The smallest frame-max a client may ask for: 0-9-1 §4.2.3 (frame-min-size).
FRAME_SIZE_MIN = 4096
# Proposed in connection.tune; RabbitMQ's default, and what clients are tested with.
FRAME_SIZE_MAX = 131_072
# Before connection.tune-ok nobody is known: 0-9-1 §4.2.3, frame-min-size, as RabbitMQ 3.10.8.
FRAME_SIZE_HANDSHAKE = 4096
# A frame is its payload and 8 bytes: type, channel, size and the end byte.
FRAME_OVERHEAD = 8
# Tables inside tables: RabbitMQ takes 14,000 levels; no client needs ten, and our decoder recurses.
TABLE_DEPTH_MAX = 64
# RabbitMQ 3.10's max_message_size; checked when the header arrives, before a body byte is kept.
MESSAGE_SIZE_MAX = 134_217_728

# --- connections --------------------------------------------------------------------------------
# Channels open at once on one connection; the number of a channel may be anything up to 65535.
CHANNELS_MAX = 2047
# Time for the whole of each handshake phase, as measured on RabbitMQ 3.10.8.
HANDSHAKE_MS = 10_000
# A refused login without the authentication_failure_close capability is left hanging this long.
REFUSAL_DELAY_MS = 3_000
# Seconds proposed in connection.tune.
HEARTBEAT_S = 60
# A closed socket waits this long for the client's own close, so that a reset does not eat the last frame.
LINGER_MS = 1_000
# Time for a TLS handshake, as RabbitMQ's ssl_handshake_timeout.
TLS_HANDSHAKE_MS = 5_000
# Connections from one address whose handshake is not complete; a reconnect storm behind one gateway fits.
# Loopback addresses are exempt: there is no stranger on this machine.
HALF_OPEN_PER_ADDRESS_MAX = 4_096
# A PROXY header of version 1, with its line end (specification §2.1).
PROXY_V1_SIZE_MAX = 107
# The rest of a PROXY header of version 2 behind its fixed part; certificates in TLVs fit.
PROXY_V2_SIZE_MAX = 4_096
# What one read brings at most, which one turn has to cope with: some 80 µs of messages of 1 KiB. With half of
# that a sync is shared by fewer messages, and twenty connections cost a tenth more.
READ_SIZE_MAX = 65_536
# The size of a read for a client that has long been the only one to send: fewer turns cost less.
READ_SIZE_ALONE_MAX = 131_072
# A client that takes no byte of what waits for it for so long is dropped: RabbitMQ's send_timeout, which is
# 30 s in 3.10.8 if nobody sets it.
SEND_TIMEOUT_MS = 15_000
# The same timeout of stream clients, which may stop reading while they work; RabbitMQ waits for ever.
STREAM_SEND_TIMEOUT_MS = 60_000
# Bytes waiting for one client's socket before its consumers are given no more.
OUTBOX_SIZE_MAX = 262_144

# --- names --------------------------------------------------------------------------------------
# A short string: 0-9-1 §4.2.5.3.
NAME_SIZE_MAX = 255

# --- routing ------------------------------------------------------------------------------------
# Answers a vhost's router keeps, by exchange and routing key: some 250 bytes each, so 64 MB at most, and
# only where so many are in use. Twice 100,000: that many queues in turn cost no more than one.
ROUTES_CACHED_MAX = 262_144
# Destinations in all answers kept together: a fanout to 100,000 queues is not kept once for each key.
ROUTE_DESTINATIONS_CACHED_MAX = 1_048_576
# Nodes of a topic exchange's trie that one key visits: a millisecond; then all patterns are matched together.
TOPIC_NODES_VISITED_MAX = 4_096
# Bindings explained in one turn of a route trace: a millisecond at most.
EXPLAINED_PER_TURN = 128
# Bindings named for each queue that a traced message would reach.
TRACED_BINDINGS_MAX = 10
# Queues that are told of in one answer, with what each would do: a fanout may reach a hundred thousand.
TRACED_QUEUES_MAX = 1_000
# Bindings named in a route trace that do not match, the nearest of them.
TRACED_MISSES_MAX = 1_000
# Weights are proportions: a million to one is as far as 65,536 slots can tell them apart, and beyond.
CONSISTENT_HASH_WEIGHT_MAX = 1_000_000

# --- arguments ----------------------------------------------------------------------------------
# Ten years: the longest x-message-ttl and x-expires that RabbitMQ takes.
EXPIRY_MS_MAX = 315_360_000_000
# x-max-priority: the priority property is one byte.
PRIORITY_MAX = 255
# Pairs of queue and reason that a message may die of before it is dropped. RabbitMQ has no bound, but a time
# that grows with the cube: a chain of 1,000 queues takes more than a minute. Ours grows with the square, and
# all of it is one step of the broker: so many take about a second.
DEATHS_MAX = 500

# Deaths of former lives that a message that was redriven tells of: its headers go out in one frame.
PAST_DEATHS_MAX = 50

# --- moving -------------------------------------------------------------------------------------
# Messages that are moved at once and not safe yet where they go: enough to share a sync among.
MOVES_IN_FLIGHT_MAX = 1_024
# Bytes of the bodies of messages in flight of a move, unless it is only one message.
MOVES_IN_FLIGHT_SIZE_MAX = 4_194_304
# Messages of a queue that are looked at, and moved, in one turn: a millisecond.
SCANNED_PER_TURN = 32
# Bytes of these that are read from the disk together, unless one is larger.
SCAN_READ_SIZE_MAX = 1_048_576
# Messages of one redrive that can be taken back, 8 bytes each: 2 MB.
UNDO_MESSAGES_MAX = 250_000
# Destinations that a preview tells apart.
PREVIEW_DESTINATIONS_MAX = 100
# Reasons for which messages cannot be moved that are told apart.
PREVIEW_REASONS_MAX = 32
# Messages of each of these that are named: enough to look at.
PREVIEW_MESSAGES_MAX = 10
# Messages that can be selected one by one for a move, as in a list on a page.
SELECTED_MESSAGES_MAX = 1_000
# Causes of dead letters that are told apart in one queue; what clients make up counts as others.
DEAD_LETTER_CAUSES_MAX = 100
# Routing keys that are shown of each.
CAUSE_KEYS_MAX = 10
# Bindings and queues that are looked at in one turn to find out where dead letters go.
REACHED_PER_TURN = 256

# --- access -------------------------------------------------------------------------------------
# Time that a regular expression has for a name and that is not counted (permissions, policies): 20 times what
# a harmless one takes. A turn of 500 frames, each with a name made up for it, is 25 ms longer.
PATTERN_GRACE_S = 0.00005
# Time for a second try of a pattern; with the number of these it bounds the cost of one pattern.
PATTERN_MATCH_S = 0.0005
# Second tries of a pattern that were not earned back by quick matches.
PATTERN_SLOW_MAX = 50
# Signs of a new pattern, also with its repetitions written out: 50 ms and 1 MiB to compile.
PATTERN_SIZE_MAX = 4_096
# Characters of a pattern that is stored already, or made of the scopes of a token.
PATTERN_KEPT_SIZE_MAX = 65_536
# Groups within groups, each of which is a call while it is compiled.
PATTERN_DEPTH_MAX = 100
# Signs of a name, which no repetition of one sign can exceed.
PATTERN_TEXT_MAX = 255
# Time for the pattern by which a list is filtered, for all names of it.
PATTERN_TIME_S = 0.05
# Answers about permissions that one channel keeps; RabbitMQ keeps 12.
PERMISSIONS_CACHED_MAX = 64
# Memory of a new argon2id hash: OWASP's choice for two passes and one lane, some 30 ms of one core.
ARGON2_MEMORY_KIB = 19_456
# Passes over the memory for a new argon2id hash.
ARGON2_PASSES = 2
# Memory that a hash made elsewhere may ask for: RFC 9106's second recommendation.
ARGON2_MEMORY_KIB_MAX = 65_536
# Passes that it may ask for: some half a second with all of that memory.
ARGON2_PASSES_MAX = 10
# Lanes that it may ask for: each is a thread while it is computed.
ARGON2_LANES_MAX = 8
# Threads that compare passwords: two of the greatest hashes take 128 MiB, and most machines have two cores.
PASSWORD_THREADS = 2
# Comparisons that wait for one of them: some 30 s of work for one core.
PASSWORDS_WAITING_MAX = 1_024
# How long a verified password is cached (ms): clients over HTTP send it with each request.
PASSWORD_CACHE_MS = 300_000
# Users whose credentials are cached: some 200 bytes each.
CACHED_CREDENTIALS_MAX = 65_536
# Failed logins that cost nothing but themselves: people mistype, and a deployment has a few wrong passwords.
LOGIN_FAILURES_FREE = 10
# The wait after the next one; it doubles with each.
LOGIN_DELAY_MS = 100
# The longest such wait: clients give up after some 10 s.
LOGIN_DELAY_MS_MAX = 5_000
# The longest delay because of a user name alone, since the user may log in from a new address.
LOGIN_NAME_DELAY_MS_MAX = 2_000
# How far ahead attempts from one address are scheduled; a client would not wait longer.
LOGIN_WAIT_MS_MAX = 10_000
# After this a failed login counts half: who is slowed down to one in 5 s stays so, and recovers in minutes.
LOGIN_FAILURE_HALF_LIFE_MS = 60_000
# How long a user counts as known at an address: from one working day to the next.
LOGIN_KNOWN_MS = 86_400_000
# Addresses, names and pairs of both that are kept: some 300 bytes each, four lists, 20 MB at most.
LOGIN_ADDRESSES_MAX = 16_384
# A token of OAuth 2: what fits into a header of HTTP, and more than a frame of the handshake holds.
TOKEN_SIZE_MAX = 16_384
# Scopes of one token that count: each is a pattern, and all of them are looked at for a topic.
TOKEN_SCOPES_MAX = 512
# Tolerated clock skew for the start of a token's validity; there is none for its expiry.
TOKEN_SKEW_MS = 10_000
# Keys of a key server: it has the present ones and the last.
KEY_SET_KEYS_MAX = 100
# Size of a key server's response: a hundred keys of 4,096 bits with their certificates.
KEY_SET_SIZE_MAX = 1_048_576
# Timeout of a request to a key server: a login waits for it.
KEY_SET_TIMEOUT_MS = 5_000
# Minimum interval between requests to a key server, since anybody can send a token with an unknown key.
KEY_SET_INTERVAL_MS = 10_000
# Timeout of all requests to a directory for one login together: a client waits no longer.
LDAP_TIMEOUT_MS = 5_000
# Connections to it at once: each login has one for some milliseconds.
LDAP_CONNECTIONS_MAX = 16
# How long an idle connection to the directory is kept: most directories close it after some minutes.
LDAP_IDLE_MS = 60_000
# Logins that wait for one of them: some seconds' worth.
LDAP_WAITING_MAX = 1_024
# How long a server that did not answer is tried last.
LDAP_RETRY_MS = 10_000
# Groups of one user: one that is in more is refused, since any of them may be the one that counts.
LDAP_GROUPS_MAX = 1_000
# A message of a directory: the name of an entry, or an error.
LDAP_MESSAGE_SIZE_MAX = 65_536
# How long a directory's answer is cached: as long as RabbitMQ's cache does.
LDAP_CACHE_MS = 15_000
# --- publishing ---------------------------------------------------------------------------------
# Addresses (exchange and routing key) that a channel remembers its permission for; then it forgets all.
PUBLISHER_ADDRESSES_MAX = 1024
# Bytes of frames of one connection that wait for a slow answer, the disk or an alarm; then it is not read.
HELD_FRAMES_SIZE_MAX = 1_048_576
# The same sum over all connections; then those that hold any are not read: 1,000 publishers hold 100 MB.
HELD_FRAMES_TOTAL_SIZE_MAX = 67_108_864
# Bytes of held frames that are looked at together when they go on: they may have to stop at the first.
HELD_PIECE_SIZE = 4_096

# --- consuming ----------------------------------------------------------------------------------
# RabbitMQ's default consumer_timeout: how long a delivery may stay unsettled.
CONSUMER_TIMEOUT_MS = 1_800_000
# A closed connection's peer has this long to answer connection.close, as in RabbitMQ.
CLOSING_MS = 30_000
# A peer whose frames are broken is dropped this long after it was told; its close-ok may not be recognised.
BROKEN_CLOSING_MS = 1_000
# Deliveries that are held too long are looked for this often, or four times within the timeout.
CONSUMER_TIMEOUT_CHECK_MS = 60_000
# Consumers of one channel; RabbitMQ 4 has a setting for it, without a bound unless it is set. Each takes some
# 700 bytes, and what lets a channel go on looks at all of them. Nobody was seen with more than hundreds.
CHANNEL_CONSUMERS_MAX = 10_000
# Consumers of one queue, whatever their channels: they come and go in constant time, and whoever lists them,
# or deletes the queue, looks at all of them.
QUEUE_CONSUMERS_MAX = 50_000
# Messages that were delivered too often, and then lost for want of a dead-letter exchange, are told of in the
# log so often at most in each virtual host: a consumer that gives all back would fill it.
LOST_DEAD_LETTERS_LOG_MS = 60_000
# Changes of the time to live that messages which came before them may tell apart in one queue and priority
# level; of more, the eldest two count as the longer one. It takes a policy to make one.
TTL_CHANGES_MAX = 64

# --- fairness -----------------------------------------------------------------------------------
# Frames of one connection that are obeyed before others get their turn: some 100 µs of small messages. Each
# copy of a message, each that is dropped from a full queue and each delivery settled counts as one more.
WORK_PER_TURN_MAX = 500
# Frames handled in one turn of a client that has long been the only one to send.
WORK_SOLE_CLIENT_MAX = 1_600
# For how long nobody else may have sent anything in that case: clients that send find the turns short.
SOLE_CLIENT_AFTER_MS = 100
# The cost of any other method, in frames of messages.
METHOD_WORK = 60
# The cost of a declaration or a step of a handshake: a turn's work.
DECLARATION_WORK = 1_600
# Queues and bindings that go in one turn when all of a connection or of a virtual host goes: some 300 µs.
REMOVED_PER_TURN = 32
# Exchanges, queues and bindings that are made in one turn when a virtual host starts: some 300 µs.
RECOVERED_PER_TURN = 16
# Queues that are held against the policies in one turn, when these have changed: some 300 µs.
POLICIES_PER_TURN = 16
# Connections that are closed in one turn when their user or their virtual host is gone.
CLOSED_PER_TURN = 8

# --- memory ---------------------------------------------------------------------------------------
# Objects that came to stay before reference cycles are looked for among all: a pause of some 100 ms, and
# what a few million bytes of cycles that were set aside alive would take meanwhile.
COLLECTION_OBJECTS_MIN = 1_000_000

# --- flow ---------------------------------------------------------------------------------------
# How fast memory or a disk may be used up, so that no limit is passed by much unseen: large messages came in
# at 700 MB a second. RabbitMQ guesses a quarter of it.
LEVEL_CHANGE_PER_MS_MAX = 1_000_000
# Memory and disk are looked at this often at most, close to a limit: a look takes some 20 µs.
LEVEL_CHECK_MS_MIN = 100
# Memory is looked at this often at least, as in RabbitMQ.
MEMORY_CHECK_MS_MAX = 2_500
# Free disk space is checked this often at least.
DISK_CHECK_MS_MAX = 10_000
# While memory is short, what is free inside the process is given back this often; it takes a core meanwhile.
TRIM_MS = 1_000

# How long a connection that was blocked by the disk is shown as such, as in RabbitMQ.
FLOW_SHOWN_MS = 5_000

# --- store --------------------------------------------------------------------------------------
# What a store has in memory and not handed to its disk yet, before publishers wait: as much again is being
# written meanwhile. Larger batches sync no cheaper for each byte, and what waits in them is not confirmed.
STORE_PENDING_SIZE_MAX = 16_777_216
# Memory of a pending message beside its content.
PENDING_MESSAGE_SIZE = 256
# Memory of each further queue of a pending message.
PENDING_REFERENCE_SIZE = 64
# A content of at most so many bytes is copied into its record: that costs less than checking it by itself,
# as long as the C library has memory for the record at hand (1,032 bytes).
CONTENT_COPIED_MAX = 900
# Messages on the disk whose places are given up in one turn when a queue is purged: ten million of them would
# stop everybody for a second.
DISCARDED_PER_BATCH = 20_000
# Bytes of a segment file, as RabbitMQ's msg_store_file_size_limit; a larger message has a file of its own.
SEGMENT_SIZE = 16_777_216
# Files kept to be used again: so much disk is never given back, and four rolls in a row make no new file.
SPARE_SEGMENTS_MAX = 4
# Reads that may fail of one segment before what is left of it is tried in large pieces only: a device may try
# for seconds each time, and this is enough for some twenty sectors.
SALVAGE_FAILURES_MAX = 256
# Bytes that are checked for being a record, while the next whole one is looked for behind a damaged one: a
# second of work at most, also where bodies were made to look like records.
SALVAGE_SEARCH_SIZE_MAX = 1_073_741_824
# Losses of messages that are remembered until somebody has acknowledged them, and after: the newest.
LOSSES_MAX = 1_000
# Queues that are known by number of each file of messages, for the case that it is lost: so many fit into the
# slot that it has in the catalog.
CATALOG_QUEUES_MAX = 17
# Positions by which the file of what may have been handed out goes ahead of a busy queue: a write for so many
# deliveries costs nothing, and after a kill so many messages say wrongly at most that they were delivered.
DELIVERED_AHEAD_MAX = 4_096
# As far it goes ahead also of a queue with one delivery in each batch, as of consumers that go in step.
DELIVERED_AHEAD_KEPT = 8
# Bytes of dead segments that are let go for each byte of state written anew for them: a queue that is done
# with every other of a million messages would else fill segments with its state as fast as they are freed.
COMPACTION_GAIN_MIN = 4
# What is read at once of a segment whose messages are moved: a fraction of a millisecond of the loop.
COMPACTION_READ_SIZE = 131_072
# How many such pieces are read before a batch while no live message is found.
COMPACTION_READS_PER_BATCH = 4
# Segments that may be dead beside as much as is alive, before one is moved: what is read in order never is.
COMPACTION_SLACK_SEGMENTS = 4
# A record of what queues are done with: one allocation when it is read.
STATE_RECORD_SIZE_MAX = 1_048_576

# --- staged -------------------------------------------------------------------------------------
# Rows of a stage that are written and read together; a stream takes them in together, too, with one sync.
STAGED_CHUNK_ROWS_MAX = 2_048
# Bytes of the bodies of such a batch, unless it is one row.
STAGED_CHUNK_SIZE = 262_144
# Rows that are published one by one in one turn, and are in the log whole or not at all: some milliseconds.
STAGED_ROWS_PER_SLICE = 256
# Bytes of a stage read at once by the thread that publishes it.
STAGED_READ_SIZE = 4_194_304
# Bytes of a stage after which it is synced while it is written: others sync on the same device.
STAGED_SYNC_SIZE = 16_777_216
# Rows of one stage, which is a partition of a batch: what is larger is for more partitions.
STAGE_ROWS_MAX = 10_000_000
# And bytes of its file.
STAGE_SIZE_MAX = 2_147_483_648
# Bytes of all stages of a node together: of a large disk a part, of a small one the alarm takes care.
STAGED_SIZE_MAX = 34_359_738_368
# And how many there may be: a kilobyte of memory for each.
STAGED_COUNT_MAX = 20_000
# Partitions of one commit: its plan is one file, written in one go.
STAGED_PARTITIONS_MAX = 10_000
# How long a stage waits for its commit (ms): a day, after which no driver retries any more.
STAGED_AGE_MS_MAX = 86_400_000
# Bytes of one batch of an Arrow stream, compressed or not: it is in memory as a whole.
STAGED_BATCH_SIZE_MAX = 67_108_864
# Bytes of the description of such a batch, or of the schema.
STAGED_METADATA_SIZE_MAX = 1_048_576
# Stages that are received at once: each has a batch in memory, twice; others wait for their turn.
STAGED_AT_ONCE_MAX = 4
# How long the next piece of such a batch may take to come (s): a client that hangs keeps others waiting.
STAGED_IDLE_S = 30.0
# Rows that are looked at in one go in a thread, before others may run.
STAGED_ROWS_PER_TURN = 128
# Slices of a batch that are published and not safe yet: enough to share a sync among.
STAGED_SLICES_MAX = 8
# Bits of a row's number in its batch, where streams know rows by number: more than fit into all stages. What
# is left of 64 is for the number of the batch.
STAGED_ROW_BITS = 34
# How long somebody who asks for a commit is kept waiting for its end (s), before he is told how far it is.
STAGED_COMMIT_S = 20.0
# Queries of a virtual host whose last batch is known: some 200 bytes each, in memory and in the log.
STAGED_QUERIES_MAX = 10_000
# And those of one user, so that no user takes the room of all others.
STAGED_QUERIES_OF_USER_MAX = 5_000
# What nobody has asked about for so long is forgotten (ms): 90 days.
STAGED_QUERY_AGE_MS_MAX = 7_776_000_000
# And nothing is forgotten before that to make room for another query (ms): a day.
STAGED_QUERY_AGE_MS_MIN = 86_400_000

# --- streams ------------------------------------------------------------------------------------
# Bytes of the files of a stream: RabbitMQ's default of x-stream-max-segment-size-bytes.
STREAM_SEGMENT_SIZE = 500_000_000
# And the most that may be asked for, as with RabbitMQ: a file goes whole, so that much is kept too long.
STREAM_SEGMENT_SIZE_MAX = 3_000_000_000
# Bytes of messages that are written as one chunk: what a reader takes in at once.
STREAM_CHUNK_SIZE = 131_072
# Bytes from one chunk that the index knows to the next: 24 bytes of memory for each of these.
STREAM_INDEX_STEP = 131_072
# Bytes of a file that are read at once.
STREAM_BLOCK_SIZE = 262_144
# And by who reads columns, chunk after chunk: four full ones, held while their rows are sent.
STREAM_READ_AHEAD_SIZE = 540_672
# And bytes of chunks kept, of all streams of a virtual host, for those who read the same or what is new:
# some 120 chunks, so that a hundred readers at different places each find theirs again.
STREAM_CACHE_SIZE = 16_777_216
# Messages that a stream hands out, or passes over, before others get a turn: some milliseconds.
STREAM_WORK_PER_TURN_MAX = 2_000
# What it costs of these to read a chunk for who may not want it: a quarter of a millisecond from a disk, and
# more for each shape of its messages.
STREAM_CHUNK_WORK = 200
# Bits that say which filter values a chunk may have, two for each: a chunk with 500 values is taken for one
# with another value in a seventh of all cases, one with 50 in one of 400. Twice what RabbitMQ has at most.
STREAM_BLOOM_BITS = 2_048
# And runs of chunks of a virtual host of which that stays known: where all chunks differ, 2 GiB of full ones,
# in 16 MiB at most.
STREAM_BLOOM_FILTERS_MAX = 16_384
# Damaged places of streams that are told in the log: one reader after the other comes by.
STREAM_DAMAGE_LOGGED_MAX = 100
# Producers whose last sequence a stream knows: those that came longest ago are forgotten. All of it stands
# once in each file, some 50 bytes for each.
STREAM_PRODUCERS_MAX = 1_000
# And consumers whose offset it knows.
STREAM_CONSUMERS_MAX = 1_000
# A file is zeroed so far ahead of small batches.
STREAM_PREALLOCATION_SIZE = 65_536

# --- stream protocol ------------------------------------------------------------------------------
# So long a client may take to answer that a consumer is active now or has stopped, as in RabbitMQ 3.11 and
# later: its group waits for it, and then it is dropped.
STREAM_ANSWER_MS = 60_000
# A batch of messages that a client packed into one entry, unpacked: a kilobyte may unpack to a megabyte.
STREAM_BATCH_SIZE_MAX = 16_777_216
# All of an AMQP 1.0 message that stands before its body: decoded as a whole, kept in a header at worst.
STREAM_HEAD_SIZE_MAX = 131_072
# Bytes of a frame that are proposed to stream clients, as in RabbitMQ: a publish of many messages is one.
STREAM_FRAME_SIZE_MAX = 1_048_576
# Bytes of a frame that are taken, whatever was agreed: as many as a batch has that was unpacked.
STREAM_FRAME_ACCEPTED_MAX = STREAM_BATCH_SIZE_MAX
# Frames of one connection before it is open: credentials and what a client says of itself.
STREAM_FRAME_SIZE_HANDSHAKE = 65_536
# Messages of one connection that are not confirmed yet, before no more is read from it, as in RabbitMQ.
STREAM_UNCONFIRMED_MAX = 50_000
# Bytes of a producer's or a consumer's reference, which a stream keeps (RabbitMQ's protocol says 256).
STREAM_REFERENCE_SIZE_MAX = 255
# Bytes of a filter value of a message, which stands in its headers: RabbitMQ has room for as many.
STREAM_FILTER_SIZE_MAX = 255
# Filter values that one subscription asks for: a chunk is held against each.
STREAM_FILTERS_MAX = 1_000
# Streams that are asked about at once, or make up a super stream: each is looked up, or declared.
STREAM_NAMES_MAX = 1_000
# Credit, in chunks, that a subscription may gather: more than that nobody reads ahead.
STREAM_CREDIT_MAX = 65_535
# Chunks in the form in which they are sent, kept for those who read the same: each is some 128 KiB.
STREAM_ENCODED_CHUNKS_MAX = 16
# Such heads that one connection remembers in converted form: most clients send one again and again.
STREAM_HEADS_CACHED_MAX = 64

# --- supervision --------------------------------------------------------------------------------
# A virtual host that fails so often, and once more, stays down: the fourth time within five minutes.
VHOST_RESTARTS_MAX = 3
# What has failed four times in this time fails for good; once an hour is a reason to look, and no more.
VHOST_WINDOW_MS = 300_000
# How long it stays away before it is started again for the first, second and third time: a disk, too, may
# need a moment.
VHOST_PAUSES_MS = (0, 500, 2_000)
# An automatic deletion of a queue that could not be written is tried again so often.
REMOVAL_RETRY_MS = 2_000
# Bytes of messages, with 128 for what each takes beside its body, that one queue may have in memory where it
# can page: what is beyond is read from the disk again, which takes a microsecond for each small message.
QUEUE_MEMORY_MAX = 16_777_216
# How often that is halved as memory runs low: a queue has 4 KiB then, and a hundred thousand have 400 MB.
QUEUE_MEMORY_STEPS = 12
# Queues that let go of messages in one turn when they may have less: most have none to let go of.
QUEUES_SHRUNK_PER_TURN = 8
# Bytes of messages that are brought back at once: more would take long turns, less more system calls.
READ_AHEAD_SIZE = 131_072
# And bytes read for a message that does not lie behind the one read before it: most fit.
RANDOM_READ_SIZE = 4_096
# Bytes from the end of one message to the next of the same queue that are read along.
READ_GAP_MAX = 8_192
# Places in a block of the row of messages that are on the disk only, 8 bytes each.
PAGED_BLOCK_SIZE = 1_024
# Positions of settled messages that are bridged in such a block; a new one takes as much as some 25 places.
PAGED_GAP_MAX = 32

# Records that are looked at in one go when a store is opened: a millisecond, in which the loop cannot run.
SCANNED_AT_ONCE = 1_000

# --- leases -------------------------------------------------------------------------------------
# Messages that one lease has at most, some 200 bytes of memory each while they are on the disk. A batch of
# Spark is one lease, and costs a second of CPU beside its rows: larger ones share it.
LEASE_MESSAGES_MAX = 500_000
# And messages of all leases of one virtual host: 1.3 GB, if none of them is small enough for its bytes.
LEASED_MESSAGES_MAX = 6_400_000
# Ranges of places that one lease has at most, all in one entry of the metadata's log: a queue of which every
# second message was settled has one for each.
LEASE_RANGES_MAX = 50_000
# And bytes of them: what is not on the disk is in memory for as long as somebody has it.
LEASE_BYTES_MAX = 134_217_728
# Leases of one virtual host that somebody has, and whose acknowledgements are not on the disk yet.
LEASES_MAX = 64
# Ended leases that it remembers: whoever asks again is told, and what was acknowledged stays so in a crash.
# More than can be without their acknowledgements on the disk.
LEASES_ENDED_MAX = 256
# How long a lease may be: whoever needs a day more renews it.
LEASE_TTL_S_MAX = 86_400
# And is, unless it is said.
LEASE_TTL_S = 300
# What a client may call a lease by.
LEASE_KEY_SIZE_MAX = 1_024
# Messages that are taken, read or settled in one turn for a lease: half a millisecond.
LEASED_PER_TURN = 512

# --- journal ------------------------------------------------------------------------------------
# What the metadata's log grows to, unless the metadata itself is larger, before it is written anew without
# what is over: a start reads so much at most for nothing.
JOURNAL_LOG_SIZE_MIN = 1_048_576
# The log is zeroed so far ahead: writing over zeros syncs in half the time of growing.
JOURNAL_PREALLOCATION_SIZE = 65_536
# Bytes of the state that are made at once, and lost with a flipped bit.
JOURNAL_CHUNK_SIZE = 16_384
# Exchanges, queues or bindings that stand in one entry of the state: some 16 KiB of short names.
JOURNAL_ROWS_MAX = 256
# How far the log goes is synced so often: a sync of its own behind each change would cost half of the rate.
JOURNAL_MARK_SYNC_MS = 1_000
# Where the end of the log is lost, so many numbers of queues behind what is known are not used again: more
# than there can be changes in a second, and 4096 times as many are there.
JOURNAL_SKIPPED_NUMBERS = 1 << 20
# A disk that failed is tried again so often at most, each time with the whole state.
JOURNAL_RETRY_MS = 1_000

# --- management ---------------------------------------------------------------------------------
# Records of which only a column is looked at, or names that are held against a text: half a millisecond.
NAMES_PER_TURN = 1_024
# Arguments of bindings whose keys are remembered: one takes some 50 µs, and listings sort by them.
BINDING_KEYS_REMEMBERED = 4_096
# Keys of a list that are held against two others in one turn, to find what a page shows: half a millisecond.
RANKED_PER_TURN = 8_192
# Names that are held against a pattern in one turn: 100 µs mostly, and for the worst pattern that is searched
# without a bound of time 20 ms.
PATTERNS_PER_TURN = 128
# What a pattern may take for one name beside PATTERN_TIME_S for all of them: more than any harmless one does.
PATTERN_NAME_S = 0.00002
# Exchanges, queues or bindings of a document that are under way together: the journal writes them as one.
IMPORTED_AT_ONCE = 32
# Entries that are held against a document in one turn, when an import is planned: some 300 µs.
PLANNED_PER_TURN = 32
# And those that are let go of in one turn, when the plan has been told: some 300 µs.
PLAN_RELEASED_PER_TURN = 512
# Entries that are told of in one answer, with what is there and what is to be.
PLANNED_SHOWN_MAX = 1_000
# Things of a document that this broker cannot have, named in one answer: enough to mend the document at once.
DEFINITIONS_NAMED_MAX = 100
# Conditions that a message is held against, and bytes of its body that are read as text or JSON for it.
CONDITIONS_MAX = 20
# A longer body is found by what its beginning says; as JSON, which it is no more then, by nothing.
MATCHED_BODY_SIZE_MAX = 262_144
# What is counted is sampled so often: RabbitMQ's collect_statistics_interval.
SAMPLE_INTERVAL_MS = 5_000
# And samples are kept for so long: RabbitMQ's sample_retention_policies, "basic".
SAMPLE_RETENTION_MS = 600_000
# Of virtual hosts and the node, a sample each minute is kept for longer.
SAMPLE_COARSE_STEP_MS = 60_000
# And they are for eight hours, in 100 KB each.
SAMPLES_COARSE_MAX = 480
# Samples of all objects together, some 100 bytes each: 40 MB. Of many that are busy each has fewer.
SAMPLES_MAX = 400_000
# But what makes a rate.
SAMPLES_OF_ONE_MIN = 2
# Objects that are sampled in one turn of the loop: a millisecond at most.
SAMPLED_PER_TURN = 128
# Samples of a number that one request may ask for, as RabbitMQ; a page with 500 queues asks often.
SAMPLES_SHOWN_MAX = 500

# --- reading with Arrow -------------------------------------------------------------------------
# Answers in rows of Arrow that are made at once: each has a chunk, or some rows, in memory, and takes a part
# of each turn of the loop.
ARROW_READERS_MAX = 32
# What a piece of an answer takes in memory, about, while nobody else is at work: four thousand rows of 200
# bytes. What a batch costs beside its rows, the broker and who reads it, is little then. They take a
# millisecond to make.
ARROW_PIECE_SIZE = 6_291_456
# What a batch of rows takes in memory beside its bodies, about: a chunk mostly makes one.
ARROW_BATCH_SIZE_MAX = 4_194_304
# Messages unlike all others that are decoded in one turn, all properties of each: a millisecond, where the
# decoder is not compiled.
ARROW_DECODED_PER_TURN = 128
# Messages of a queue that are gathered in one turn: as long as it takes to decode those.
ARROW_BROWSED_PER_TURN = 256
# How long a client may take nothing before its answer ends: others wait for its place.
ARROW_STALLED_S_MAX = 60
# How long the loop is left to others after a piece, while they are at work: the shortest time that its timers
# know, and twice what making and sending a chunk's takes.
ARROW_PAUSE_S_MIN = 0.001

# Redrives, moves and undos that run at once: each takes a part of a turn of the loop.
JOBS_RUNNING_MAX = 16
# And those that are over and remembered: some kilobytes each.
JOBS_KEPT_MAX = 100
# Places of messages that all redrives together remember so that they can be undone: 8 bytes each.
UNDO_MESSAGES_TOTAL_MAX = 1_000_000
# How often a job that is held up, by an alarm or a slow disk, looks whether it may go on.
JOB_POLL_S = 0.1
# How long a node that stops waits for what its jobs have under way to be safe.
JOBS_STOPPING_S = 5.0
# Messages per second that a job may be told to move at most: it will not be that fast.
JOB_RATE_MAX = 1_000_000
# Messages of an answer that previews a redrive one by one.
PREVIEWED_MAX = 50
# Messages that are looked at for one list of dead letters, in all queues of it: half a second.
DEAD_LETTERS_EXAMINED_MAX = 20_000
# And in one of its queues: the list shows what there is, and one queue is asked for the rest.
DEAD_LETTERS_PER_QUEUE_MAX = 1_000

# --- log ----------------------------------------------------------------------------------------
# Lines of the log that wait to be written, some 500 bytes each: what a second of reconnecting clients makes.
LOG_QUEUE_LENGTH_MAX = 10_000
# How long the end of the process waits for whoever takes the log.
LOG_STOP_S_MAX = 2
# Letters of the name that a client gives itself, in a line of the log: more of 8 KiB says nobody anything.
LOGGED_NAME_LENGTH_MAX = 256

# --- command line -------------------------------------------------------------------------------
# Bytes of an answer that the command line takes into its memory: definitions of a hundred thousand queues.
CLI_ANSWER_SIZE_MAX = 268_435_456
