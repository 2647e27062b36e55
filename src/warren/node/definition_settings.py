"""The settings of definitions that are imported at a start, each declared once, as in `settings`."""

from warren.node.setting_types import Setting
from warren.node.values import boolean, choice, text

LOCAL, HTTPS = "local_filesystem", "https"
# RabbitMQ's names of the sources, and of the modules that read them.
_BACKENDS = {
    LOCAL: LOCAL,
    "local": LOCAL,
    "rabbit_definitions_import_local_filesystem": LOCAL,
    HTTPS: HTTPS,
    "rabbit_definitions_import_https": HTTPS,
}

FILES = Setting(
    "load_definitions", "", text,
    "JSON file of definitions, or directory of such files, imported at each start: "
    "`/etc/warren/definitions.json`",
)  # fmt: skip
_OLD = "older name of `load_definitions`, which overrides it"
FILES_OLD = Setting("management.load_definitions", "", text, _OLD)
BACKEND = Setting(
    "definitions.import_backend", LOCAL, choice(_BACKENDS),
    "source of definitions: `local_filesystem`, or `https` for `definitions.https.url`, beside the files of "
    "`load_definitions`",
)  # fmt: skip
URL = Setting(
    "definitions.https.url", "", text,
    "HTTPS address of definitions that are imported at each start with `definitions.import_backend = https`, "
    "such as `https://config.example.org/broker.json`",
)  # fmt: skip
AUTHORITY_FILE = Setting(
    "definitions.tls.cacertfile", "", text,
    "PEM file with the CA certificates that the server of `definitions.https.url` is verified against; "
    "unset: those of the system",
)  # fmt: skip
CERTIFICATE_FILE = Setting(
    "definitions.tls.certfile", "", text,
    "PEM file with the client certificate that is sent to the server of `definitions.https.url`",
)  # fmt: skip
KEY_FILE = Setting(
    "definitions.tls.keyfile", "", text, "PEM file with the private key of `definitions.tls.certfile`"
)
KEY_PASSWORD = Setting(
    "definitions.tls.password", "", text, "passphrase of `definitions.tls.keyfile`", is_secret=True
)
VERIFY = Setting(
    "definitions.tls.verify", True, choice({"verify_peer": True, "verify_none": False}),
    "`verify_peer` verifies the certificate of the server of `definitions.https.url`; `verify_none` does not",
)  # fmt: skip
FILES_PATH = Setting(
    "definitions.local.path", "", text,
    "another name of `load_definitions`, which overrides it: a file or directory of definitions to import",
)  # fmt: skip
SKIP_INVALID = Setting(
    "definitions.skip_invalid", False, boolean,
    "import the rest of a definitions file if entries cannot be declared, which the log names",
)  # fmt: skip
