"""TLS as a client speaks it: how a broker's certificate is checked, what is shown, what a failure means."""

import ssl
from dataclasses import dataclass, field

# What a broker says that wants another certificate of its client, as OpenSSL names its alerts.
_WANTS_CERTIFICATE = frozenset((
    "TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV1_ALERT_UNKNOWN_CA",
    "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_CERTIFICATE_EXPIRED", "SSLV3_ALERT_CERTIFICATE_REVOKED",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "TLSV1_ALERT_ACCESS_DENIED",
    "TLSV1_ALERT_DECRYPT_ERROR",
))  # fmt: skip
# How a connection ends without a word: some brokers say nothing when they miss a certificate.
_HUNG_UP = (ConnectionResetError, BrokenPipeError, EOFError, ssl.SSLEOFError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """What a broker's certificate is checked with, and which certificate is shown to it."""

    # None: what the system trusts.
    ca_file: str | None = None
    cert_file: str | None = None
    # None: the key is in the file of the certificate.
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    is_verified: bool = True


NO_FILES = ClientTls()


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsNames:
    """What a user calls these, for texts of errors."""

    ca_file: str
    cert_file: str
    key_file: str
    key_password: str


def client_context(tls: ClientTls, names: TlsNames) -> ssl.SSLContext:
    """The context of these files; ValueError says in a line which cannot be used and why."""
    if tls.key_file and not tls.cert_file:
        raise ValueError(f"{names.key_file} is the key of a certificate: give it with {names.cert_file}")
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except OSError as error:
        raise ValueError(f"{names.ca_file} {tls.ca_file}: {_reason(error)}") from None
    if not tls.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file:
        _show(context, tls, names)
    return context


def wants_certificate(error: BaseException) -> bool:
    """Whether a broker has refused the client for its certificate, or for having none."""
    return isinstance(error, ssl.SSLError) and getattr(error, "reason", None) in _WANTS_CERTIFICATE


def refusal_hint(error: BaseException, tls: ClientTls, names: TlsNames) -> str:
    """What to do about a connection with TLS that does not come about; empty if that is not known."""
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"{names.ca_file} names the authorities to trust"
    if not wants_certificate(cause) and not isinstance(cause, _HUNG_UP):
        return ""
    if tls.cert_file is None:
        return f"if it asks clients for a certificate, {names.cert_file} and {names.key_file} show one"
    return f"it may not accept the certificate of {names.cert_file} {tls.cert_file}: who has signed it?"


def _show(context: ssl.SSLContext, tls: ClientTls, names: TlsNames) -> None:
    """Have `context` show a certificate."""
    assert tls.cert_file is not None

    def password() -> str:
        if tls.key_password is None:
            raise ValueError(f"{key_name} {key_file}: the key is encrypted; {names.key_password} opens it")
        return tls.key_password

    key_name, key_file = names.cert_file, tls.cert_file
    if tls.key_file is not None:
        key_name, key_file = names.key_file, tls.key_file
    for name, file in ((names.cert_file, tls.cert_file), (key_name, key_file)):
        try:
            with open(file, "rb"):
                pass
        except OSError as error:
            raise ValueError(f"{name} {file}: {error.strerror}") from None
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file, password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            what = f"not the key of the certificate in {tls.cert_file}"
        elif tls.key_file is None:
            what = f"no certificate and its key in PEM; {names.key_file} names the key"
        elif tls.key_password is not None:
            what = f"no key in PEM that {names.key_password} opens"
        else:
            what = f"with {names.cert_file} {tls.cert_file} no certificate and its key in PEM"
        raise ValueError(f"{key_name} {key_file}: {what}") from None


def _reason(error: OSError) -> str:
    return "no certificates in PEM" if isinstance(error, ssl.SSLError) else error.strerror or str(error)
