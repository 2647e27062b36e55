"""The settings of revoked certificates, each declared once, as in `settings`."""

from warren.node.setting_types import Family, Setting
from warren.node.values import choice, text
from warren.transport.revocation import RevocationCheck

REVOCATION_CHECK = Setting(
    "ssl_options.crl_check", RevocationCheck.NONE, choice({check.value: check for check in RevocationCheck}),
    "refuse revoked client certificates on the AMQP and stream listeners: `peer` checks the certificate of "
    "the client, `true` all of its chain; needs `ssl_options.crl_sources`",
)  # fmt: skip
REVOCATION_SOURCES: Family[str] = Family(
    "ssl_options.crl_sources", {}, text,
    "where lists of revoked certificates are: in a directory, with `ssl_options.crl_sources.1 = dir` and "
    "`ssl_options.crl_sources.1.path = /etc/warren/crls`; or on web servers, with "
    "`ssl_options.crl_sources.2 = http`, the milliseconds of a request "
    "`ssl_options.crl_sources.2.timeout = 5000`, and `ssl_options.crl_sources.2.url` for one that no "
    "certificate names",
)  # fmt: skip
