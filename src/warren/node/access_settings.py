"""The settings of who may do what over HTTP, each declared once, as in `settings`."""

from warren.node.setting_types import Setting
from warren.node.values import boolean

ARE_OPERATOR_POLICIES_FIXED = Setting(
    "management.restrictions.operator_policy_changes.disabled", False, boolean,
    "refuse to create, change or delete single operator policies over the HTTP API, with 405",
)  # fmt: skip
ARE_PASSWORD_HASHES_HIDDEN = Setting(
    "management.hide_password_hashes", False, boolean,
    "answer requests for users with `has_password` instead of `password_hash`; definitions still have it",
)  # fmt: skip
METRICS_LOGIN = Setting(
    "prometheus.authentication.enabled", False, boolean,
    "require the name and password of a user with the tag `monitoring` or `administrator` for the Prometheus "
    "endpoint",
)  # fmt: skip
