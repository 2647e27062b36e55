"""The settings of what each new virtual host gets, each declared once, as in `settings`."""

from warren.node.setting_types import Family
from warren.node.values import text

USERS: Family[str] = Family(
    "default_users", {}, text,
    "users who get permissions in each new virtual host whose name matches "
    "`default_users.NAME.vhost_pattern`, and are created if they do not exist: `.password`, `.tags`, "
    "`.configure`, `.write` and `.read`",
    secrets=frozenset(("password",)),
)  # fmt: skip
POLICIES: Family[str] = Family(
    "default_policies", {}, text,
    "operator policies of each new virtual host whose name matches "
    "`default_policies.operator.NAME.vhost_pattern`: `.queue_pattern`, `.apply_to`, and the keys of the "
    "policy with underscores, such as `.max_length`",
)  # fmt: skip
LIMITS: Family[str] = Family(
    "default_limits", {}, text,
    "limits of each new virtual host, the first whose `default_limits.vhosts.NAME.pattern` matches: "
    "`.max_connections` and `.max_queues`",
)  # fmt: skip
