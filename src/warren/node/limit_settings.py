"""The limits that an operator sets on a node or its cluster, each declared once, as in `settings`."""

from warren import limits
from warren.node.setting_types import Setting
from warren.node.values import integer, unless

_NO_LIMIT = ("infinity",)

VHOSTS: Setting[int | None] = Setting(
    "vhost_max", None, unless(_NO_LIMIT, integer(0)),
    "maximum number of virtual hosts, such as `100`; unset or `infinity`: no limit of its own",
)  # fmt: skip
QUEUES: Setting[int | None] = Setting(
    "cluster_queue_limit", None, unless(_NO_LIMIT, integer(0)),
    "maximum number of queues of all virtual hosts together, such as `10000`; unset or `infinity`: no limit "
    "of its own",
)  # fmt: skip
EXCHANGES: Setting[int | None] = Setting(
    "cluster_exchange_limit", None, unless(_NO_LIMIT, integer(0)),
    "maximum number of exchanges of all virtual hosts together, predeclared ones included, such as `1000`; "
    "unset or `infinity`: no limit of its own",
)  # fmt: skip
NODE_CHANNELS: Setting[int | None] = Setting(
    "channel_max_per_node", None, unless(_NO_LIMIT, integer(1)),
    "maximum number of open channels of the node, such as `10000`; unset or `infinity`: no limit",
)  # fmt: skip
TRANSACTION_PUBLISHES: Setting[int | None] = Setting(
    "channel_tx_message_max", None, unless(_NO_LIMIT, integer(1)),
    "maximum number of uncommitted publishes of a transaction; one more closes the channel; unset or "
    "`infinity`: no limit",
)  # fmt: skip
STREAM_CONNECTIONS: Setting[int | None] = Setting(
    "stream.max_connections", None, unless(_NO_LIMIT, integer(0)),
    "maximum number of open connections of stream clients, which count for `connection_max` as well; unset "
    "or `infinity`: no limit of its own",
)  # fmt: skip
STREAM_FRAME_SIZE_HANDSHAKE = Setting(
    "stream.initial_frame_max", limits.STREAM_FRAME_SIZE_HANDSHAKE, integer(4096, 2**24),
    "maximum frame size in bytes of a stream client before its connection is open; raise it for long OAuth 2 "
    "tokens",
)  # fmt: skip
SUPER_STREAM_PARTITIONS = Setting(
    "stream.max_super_stream_partitions", limits.STREAM_NAMES_MAX, integer(1, limits.STREAM_NAMES_MAX),
    "maximum number of partitions of a super stream that a stream client creates",
)  # fmt: skip
