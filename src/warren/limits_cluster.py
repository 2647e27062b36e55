"""Every bound of the traffic between the nodes of a cluster, each with its reason. Sizes are in bytes."""

# --- frames --------------------------------------------------------------------------------------
# The body of a frame from a peer that has proved itself: four parts of a payload, and more than any frame
# of version 1 has, so that a later version can have larger ones.
CLUSTER_FRAME_SIZE_MAX = 1_048_576
# All that a peer may send before it has proved that it knows the cookie: ten times what a handshake needs.
CLUSTER_UNPROVEN_SIZE_MAX = 4_096
# The name of a node: 255 characters of a host, as DNS has them, and what stands before them.
CLUSTER_NODE_NAME_SIZE_MAX = 511
# The text of a refusal: one line of a log.
CLUSTER_REFUSAL_SIZE_MAX = 256
# What a node tells with each ping: a few numbers, which are sent every CLUSTER_PING_MS to each peer.
CLUSTER_DIGEST_SIZE_MAX = 4_096

# --- payloads ------------------------------------------------------------------------------------
# One payload: a message of the largest size that is common, and a piece of a snapshot. Both ends may hold
# one of each connection.
CLUSTER_PAYLOAD_SIZE_MAX = 16_777_216
# One part of a payload: 2 ms at 1 Gbit/s, so that a ping does not wait longer behind it.
CLUSTER_PART_SIZE_MAX = 262_144
# What a part counts beside its data, so that empty payloads are bounded as well: its objects in memory.
CLUSTER_PART_OVERHEAD = 128
# What one end may send before the other has obeyed it: 40 ms at 100 MB/s. It is sent again when a connection
# is replaced, and is in memory until then.
CLUSTER_WINDOW_SIZE = 4_194_304
# How much of it an end receives until it says so at once, and not with what it sends next or with the next
# ping: two large payloads, so that the peer uses their memory again while it is in the processor's cache.
CLUSTER_UNTOLD_SIZE_MAX = 262_144
# All that waits at one end of a session: its window and a payload of the largest size, for a caller that
# asks whether the link is writable. One that does not ask is refused beyond it.
CLUSTER_KEPT_SIZE_MAX = 33_554_432
# What one write to a socket takes: as much as a part, so that other connections have their turn.
CLUSTER_OUTPUT_SIZE = 262_144
# Begins of a session on one connection: the first, and another for each end that has given up a former one.
CLUSTER_BEGINS_MAX = 4

# --- times ---------------------------------------------------------------------------------------
# The handshake of a connection: some round trips. Another attempt fits into the time of a session if one is
# lost in a network that drops everything.
CLUSTER_HANDSHAKE_MS = 2_000
# The interval of pings: little more than a third of the silence that is noticed, so that one may be late;
# that of the ticks of a member, so that one wake of the process is for both.
CLUSTER_PING_MS = 400
# The pings of a link from one to the next that is for all its connections, and not only for the control
# connection: two of these are in the time after which a connection is given up.
CLUSTER_PINGS_PER_CONNECTION_PING = 2
# The silence after which a peer is reported: shorter than the shortest time to an election.
CLUSTER_SILENT_MS = 1_100
# The time without a whole frame after which a connection is given up and replaced: a part of the largest size
# arrives within it at 1 Mbit/s, and there is time for another connection in the same session.
CLUSTER_CONNECTION_SILENT_MS = 2_000
# How long a session outlasts its connection: a network that fails over is back by then, and a node whose
# peers have declared it down after the same time has lost its session.
CLUSTER_SESSION_MS = 5_000
# The pause before the first attempt to connect again: a peer that restarts is not there at once.
CLUSTER_REDIAL_MIN_MS = 50
# The longest pause, to which it is doubled: one attempt in a second costs nothing, and a session has five.
CLUSTER_REDIAL_MAX_MS = 1_000
# Attempts in a row that must be refused before the process of a peer counts as ended: the first may meet one
# that closes its listener for a moment. With the pauses before them, they take 75 to 150 ms.
CLUSTER_REFUSALS_GONE = 2
# A connection that lasted this long was a good one: the next attempt begins with the shortest pause.
CLUSTER_CONNECTION_GOOD_MS = 1_000
# The time in which a node must be admitted that asks to join: three elections of a leader, and what it takes
# for a majority to agree.
CLUSTER_JOIN_MS = 30_000
# How long a node tries in vain to reach the one that it is to join: that one may be starting.
CLUSTER_JOIN_FAILURES_MS = 3_000
# The time that one look at the clock may add: a clock that is set, and a process that was stopped, do not
# make all peers silent before what they have sent meanwhile is read.
CLUSTER_ELAPSED_MS_MAX = 500

# --- sockets ---------------------------------------------------------------------------------------
# Connections whose peer has not proved itself: three for each of twenty nodes that connect at once.
CLUSTER_UNPROVEN_MAX = 64
# Those from one address: three for each of some nodes behind one gateway, or on one machine.
CLUSTER_UNPROVEN_PER_ADDRESS_MAX = 16
# An attempt to connect, with the name of the host and TLS, before the handshake: together they are shorter
# than a session.
CLUSTER_DIAL_MS = 2_000
# The longest wait of an address from which peers were refused: shorter than the patience of a node that has
# the right cookie by now. There are too many cookies to try one in a second.
CLUSTER_UNPROVEN_DELAY_MS_MAX = 1_000
# One read of a socket, after which others have their turn: some 60 µs of checksums.
CLUSTER_READ_SIZE = 131_072
# The cookie: Erlang's is an atom, of 255 characters at most.
CLUSTER_COOKIE_SIZE_MAX = 255

# --- joining -------------------------------------------------------------------------------------
# Nodes that ask at the same time to join: more than a cluster usually has.
CLUSTER_JOINERS_MAX = 32
# Characters of the host at which a node that joins is reached: what the DNS permits.
CLUSTER_HOST_SIZE_MAX = 255

# --- forming -------------------------------------------------------------------------------------
# Nodes that a blank one asks to admit it, from its settings or from one answer of the DNS: as many as may
# join at a time. One round takes a minute if none of them answers.
FORMATION_NODES_MAX = 32
# How long a seed asks the others before it begins a cluster without those that do not answer: two rounds of
# three nodes, and as long as a session of a link outlasts its connection.
FORMATION_SEED_MS = 5_000
# How long a node that is asked has to prove itself: a node in reach takes some milliseconds, and one that is
# not is asked again.
FORMATION_PROOF_MS = 2_000
# How long a member has to answer, once it has proved itself: a little longer than its proposal may take.
FORMATION_ADMISSION_MS = 12_000
# One answer of the DNS: its clients repeat a question that was lost after five seconds.
FORMATION_LOOKUP_MS = 6_000

# --- members -------------------------------------------------------------------------------------
# Members that vote on the metadata; others follow. Each entry waits for a majority of them, and with seven
# three may fail.
CLUSTER_VOTERS_MAX = 7
# The silence after which the leader says that a member is down: its transient queues are deleted, and what
# waits for its queues is refused. Longer than an election, so that a new leader has heard of it before.
CLUSTER_MEMBER_DOWN_MS = 5_000
# How long a node does not reach a majority of the voters before it is in the minority: longer than a link is
# silent for other reasons, and shorter than the time after which the others say that it is down.
CLUSTER_MINORITY_MS = 2_000
# How long it does not, before its clients are shut out: so that connections which the network has forgotten
# are replaced before. The sessions with the others still last then.
CLUSTER_PAUSE_MS = 3_000
# How long a node that reaches a majority knows no leader before it counts as in the minority: some elections,
# and as long as a change of the metadata waits for one.
CLUSTER_LEADERLESS_MS = 10_000
# Pieces of an image of the metadata that are sent in one turn, each of some JOURNAL_CHUNK_SIZE bytes:
# encoding them takes some ten milliseconds.
CLUSTER_IMAGE_PIECES_PER_TURN = 64
# Bytes of an image of the metadata: that of a million queues has some 100 MB.
CLUSTER_IMAGE_SIZE_MAX = 1_073_741_824

# --- what nodes tell each other ---
# The version of the broker in a digest: more than any has.
CLUSTER_DIGEST_RELEASE_SIZE_MAX = 64
# Listeners in a digest: twice the protocols that there are. With them a digest stays below its size.
CLUSTER_DIGEST_LISTENERS_MAX = 16
# The protocol of a listener: twice the longest name of one.
CLUSTER_DIGEST_PROTOCOL_SIZE_MAX = 32
# The address of a listener: that of IPv6 with the name of an interface.
CLUSTER_DIGEST_ADDRESS_SIZE_MAX = 64
# Members in a digest that its node does not hear: more than a cluster has as a rule, at 3 bytes each.
CLUSTER_DIGEST_SILENT_MAX = 128
# The highest number of clients of a node that it can tell: more than sockets of one machine.
CLUSTER_CLIENTS_MAX = 0x7FFF_FFFF
# Counts of clients in one payload, one payload in a tick for each link: 5,000 in a second, and at most as
# much as a ping may wait for.
CLUSTER_COUNTS_PER_PAYLOAD = 512
# Counts that are kept of another node, some 200 bytes each. What is beyond them is not counted.
CLUSTER_COUNTS_KEPT_MAX = 100_000

# --- queues on other nodes ---
# What one turn collects before it is sent without waiting for the end of the turn, in bytes and in pieces, of
# which a small message has two: the other node handles a payload in one turn, of about a millisecond.
REMOTE_BATCH_SIZE, REMOTE_BATCH_PIECES = 131_072, 4_096
# One payload of a link: larger ones pass in parts of this size.
REMOTE_PART_SIZE_MAX = 16_777_216
# All parts of one payload: the largest message that a setting permits (512 MiB), with its properties.
REMOTE_PAYLOAD_SIZE_MAX = 553_648_128
# Publishes to one queue that are held while its node cannot take them; beyond it their publishers wait: some
# milliseconds of a fast publisher, and little memory for a thousand queues. Direct replies to one node and
# virtual host are dropped beyond it.
REMOTE_HELD_SIZE_MAX = 1_048_576
# Deliveries that a consumer gets before its node must have asked for more: they hide the time of the way
# there and back, and are what a consumer whose client does not read keeps from others.
REMOTE_WINDOW_MESSAGES = 2_048
# Their bodies: as much as four outboxes of a client hold.
REMOTE_WINDOW_SIZE = 1_048_576
# How long a payload waits for metadata that its sender had applied already. A node that is not told of an
# entry within two seconds has lost the majority, and what it does not know is refused.
REMOTE_PARKED_MS_MAX = 2_000
# Payloads that wait so for one node and virtual host: those of two seconds of a usual publisher. Beyond it
# the first one is not waited for any longer.
REMOTE_PARKED_MAX = 256
# Their size, which is twice what a link has under way.
REMOTE_PARKED_SIZE_MAX = 8_388_608
# How long the declaration of a transient queue waits whose home is away: as long as the members need to agree
# that it is down after it is silent, and to choose a new leader if it was the leader.
HOME_ABSENCE_MS_MAX = 5_000
# Queues to which one message goes with one copy of its body: what 16 bits count.
REMOTE_TARGETS_MAX = 65_535
# The text of an error that another node answers: its size has 16 bits. Close methods shorten it.
REMOTE_TEXT_SIZE_MAX = 65_535
# The arguments of a consumer that say what it reads of a stream, without their size: as much as one method
# of a client has, unless the frames of clients may be larger than usual.
REMOTE_ARGUMENTS_SIZE_MAX = 131_072
# Places of a quorum queue in one item: the leader handles an item in one turn, some 30 ms of settlements.
REMOTE_PLACES_MAX = 65_536
# Publishes of a node to a quorum queue that no leader has answered; beyond it their publishers wait. While
# there is a leader: what a fast publisher sends in 100 ms. While there is none, see REMOTE_HELD_SIZE_MAX.
REPLICATED_UNANSWERED_SIZE_MAX = 16_777_216
# How long an operator waits until another node leads a quorum queue: longer than an election takes.
LEADER_TRANSFER_MS_MAX = 5_000
# How long a method of a client waits for a leader of its queue: as RabbitMQ, three elections at least.
LEADER_ABSENCE_MS_MAX = 10_000
# How long a new leader waits for what other nodes hold: longer than a former leader may hand out messages.
CLAIMS_MS_MAX = 2_000
# RabbitMQ's default consumer_disconnected_timeout: how long a node that the leader of a quorum queue cannot
# reach keeps what it holds, unless it is down.
DISCONNECTED_MS = 60_000
# Queues that a node may name in a session, each about 500 bytes here: more than a virtual host has.
REMOTE_NAMED_MAX = 10_000_000

# --- questions between nodes ---
# The arguments of a query: those of a request of the HTTP API, of which the largest names the rows of a page.
QUERY_SIZE_MAX = 1_048_576
# Queries of one node to another that are not answered, which is also what the other one answers at a time: a
# request of the HTTP API has one for each node, and more would wait for the same event loop.
QUERIES_MAX = 256
# A piece of an answer: votes and the log of the metadata pass between pieces.
ANSWER_PIECE_SIZE = 65_536
# Pieces that the answering node may send before the asking node has taken any: they hide the time of the way
# there and back, and are what a reader that does not read keeps in memory.
ANSWER_PIECES_AHEAD = 8
# Pieces that a later version may ask for at once: half of the window of a link.
ANSWER_PIECES_MAX = 32
# The text with which a query is refused: one line of a log.
QUERY_REFUSAL_SIZE_MAX = 256
# An answer that is kept as a whole: the rows of 10,000 queues. Larger lists are asked for in parts.
ANSWER_SIZE_MAX = 33_554_432
# All answers that are kept as a whole at a time, for all requests together: a few of the largest.
ANSWERS_SIZE_MAX = 134_217_728
# How long a node waits for the next piece of what another one has in memory: RabbitMQ's interface refreshes
# each five seconds, and a page without one node is better than none.
QUERY_MS = 2_000
# How long it waits for the outcome of an action, which may wait for a disk or for a majority: these answer
# within ten seconds, or say that they cannot. A node that is gone is noticed earlier.
QUERY_ACTION_MS = 30_000
# Rows of a list that one query asks for: their names fit into it, and it takes the other node some turns.
QUERY_ROWS_MAX = 1_000

# --- members of groups of quorum queues ----------------------------------------------------------
# Groups whose members a leader changes at a time: each may have a replica that is sent all its messages.
GROUP_CHANGES_MAX = 8
# How long such a group keeps its place without any progress while others wait: a new replica of a queue of
# usual length has everything by then, and one that needs longer goes on without the place.
GROUP_CHANGE_IDLE_MS = 30_000
# Groups that are compared with the metadata in one turn: a millisecond. Those of a node that leads 10,000
# are compared within some 20 s after a policy for all of them has changed.
GROUPS_EXAMINED_PER_TURN = 256
# Entries that a replica may lack when it gets a vote: what a busy queue proposes in some milliseconds. Under
# load none ever has all of them.
GROUP_CAUGHT_UP_ENTRIES_MAX = 16
