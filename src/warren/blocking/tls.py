"""TLS of a client: the context for its files, and advice for a failed connection."""

import ssl
from dataclasses import dataclass

from warren.client.uri import ClientTls

# Alerts, as OpenSSL names them, of a broker that does not accept the client's certificate, or its lack.
_WANTS_CERTIFICATE = frozenset((
    "TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV1_ALERT_UNKNOWN_CA",
    "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_CERTIFICATE_EXPIRED", "SSLV3_ALERT_CERTIFICATE_REVOKED",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "TLSV1_ALERT_ACCESS_DENIED",
    "TLSV1_ALERT_DECRYPT_ERROR",
))  # fmt: skip
# Errors of a connection that is closed without an alert, as some brokers do for a missing certificate.
_HUNG_UP = (ConnectionResetError, BrokenPipeError, EOFError, ssl.SSLEOFError)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsNames:
    """The names of these options for the user, used in error texts."""

    ca_file: str
    cert_file: str
    key_file: str
    key_password: str


def client_context(tls: ClientTls, names: TlsNames) -> ssl.SSLContext:
    """Return the context for these files. Raises ValueError with the file and the reason, in one line."""
    if tls.key_file and not tls.cert_file:
        raise ValueError(f"{names.key_file} needs {names.cert_file}, the certificate of the key")
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
    """True if the broker refused the client certificate, or requires one."""
    return isinstance(error, ssl.SSLError) and getattr(error, "reason", None) in _WANTS_CERTIFICATE


def refusal_hint(error: BaseException, tls: ClientTls, names: TlsNames) -> str:
    """Return advice for a failed TLS connection; an empty string if there is none."""
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"set the trusted certificates with {names.ca_file}"
    if not wants_certificate(cause) and not isinstance(cause, _HUNG_UP):
        return ""
    if tls.cert_file is None:
        return f"if it requires a client certificate, set it with {names.cert_file} and {names.key_file}"
    return f"it may not trust the certificate of {names.cert_file} {tls.cert_file}: check who signed it"


def _show(context: ssl.SSLContext, tls: ClientTls, names: TlsNames) -> None:
    """Load the client certificate into `context`. Raises ValueError."""
    assert tls.cert_file is not None

    def password() -> str:
        if tls.key_password is None:
            raise ValueError(f"{key_name} {key_file}: the key is encrypted and needs {names.key_password}")
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
            what = f"this is not the key of the certificate in {tls.cert_file}"
        elif tls.key_file is None:
            what = f"no certificate with its key in PEM; set the key with {names.key_file}"
        elif tls.key_password is not None:
            what = f"no key in PEM that can be decrypted with {names.key_password}"
        else:
            what = f"this and {names.cert_file} {tls.cert_file} are not a key and its certificate in PEM"
        raise ValueError(f"{key_name} {key_file}: {what}") from None


def _reason(error: OSError) -> str:
    return "no certificates in PEM" if isinstance(error, ssl.SSLError) else error.strerror or str(error)
