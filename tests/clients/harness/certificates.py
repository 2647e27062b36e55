"""A certificate authority for the suites that speak TLS: one server certificate, one client's, one broken."""

import socket
from pathlib import Path

import trustme
from tests.clients.harness import fetching


def issue(folder: Path) -> None:
    """Write the files into `folder` that a suite expects there and its source distribution lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = authority_of(issue_server())
    stranger = trustme.CA().issue_cert("guest@localhost", common_name="guest")
    authority.cert_pem.write_to_path(str(folder / "ca_certificate.pem"))
    users = {"client": "guest", "client_localhost": "rabbit"}
    if node_host():
        users[f"client_{node_host()}"] = "rabbit"
    for name, user in users.items():
        client = authority.issue_cert(f"{user}@localhost", common_name=user)
        client.private_key_pem.write_to_path(str(folder / f"{name}_key.pem"))
        client.cert_chain_pems[0].write_to_path(str(folder / f"{name}_certificate.pem"))
    # The key does not belong to the certificate: no handshake can succeed with this pair.
    stranger.private_key_pem.write_to_path(str(folder / "client_key_broken.pem"))
    client.cert_chain_pems[0].write_to_path(str(folder / "client_certificate_broken.pem"))


def issue_server() -> Path:
    """Return the directory with `ca.pem`, `server.pem` and `server_key.pem` for the broker's TLS listener."""
    names = [name for name in ("localhost", node_host()) if name]
    folder = fetching.CACHE / "certificates" / "-".join(names)
    with fetching.locked(folder):
        if not (folder / "server.pem").exists():
            folder.mkdir(parents=True, exist_ok=True)
            authority = trustme.CA()
            authority.cert_pem.write_to_path(str(folder / "ca.pem"))
            authority.private_key_pem.write_to_path(str(folder / "ca_key.pem"))
            server = authority.issue_cert(*names, "127.0.0.1", "::1")
            server.private_key_pem.write_to_path(str(folder / "server_key.pem"))
            server.cert_chain_pems[0].write_to_path(str(folder / "server.pem"))
    return folder


def node_host() -> str:
    """Return the host in the name of a local node; empty if it does not resolve to the loopback address."""
    host = socket.gethostname().partition(".")[0]
    try:
        return host if socket.gethostbyname(host) == "127.0.0.1" else ""
    except OSError:
        return ""


def authority_of(folder: Path) -> trustme.CA:
    """Return the authority that `issue_server` stored in `folder`."""
    return trustme.CA.from_pem((folder / "ca.pem").read_bytes(), (folder / "ca_key.pem").read_bytes())
