"""Starts OpenLDAP's `slapd` with a small directory, on a free port of the loopback interface."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.patience import patient

# Debian installs it in a directory that is not in the path of users.
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/usr/libexec"])
SLAPD = shutil.which("slapd", path=_PATH)
_SCHEMAS = Path("/etc/ldap/schema")
_MODULES = Path("/usr/lib/ldap")
MISSING = "Debian's slapd is not installed"
_START_TIMEOUT_S = patient(20)

SUFFIX = "dc=example,dc=org"
SERVICE = f"cn=service,{SUFFIX}"
SERVICE_PASSWORD = "service's word"

_CONFIGURATION = """\
include {schemas}/core.schema
include {schemas}/cosine.schema
include {schemas}/nis.schema
include {schemas}/inetorgperson.schema
modulepath {modules}
moduleload back_mdb
pidfile {folder}/slapd.pid
{tls}
database mdb
suffix "{suffix}"
rootdn "cn=root,{suffix}"
directory {folder}/data
maxsize 16777216
access to attrs=userPassword by anonymous auth by * none
access to dn.subtree="ou=people,{suffix}" by users read by * none
access to * by users read by * none
"""


def is_there() -> bool:
    """Whether slapd is installed."""
    return SLAPD is not None and _SCHEMAS.is_dir() and _MODULES.is_dir()


def directory_entries(*entries: str) -> str:
    """The entries of a directory in LDIF, below its suffix."""
    tops = (
        f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: example\n",
        f"dn: ou=people,{SUFFIX}\nobjectClass: organizationalUnit\n",
        f"dn: ou=groups,{SUFFIX}\nobjectClass: organizationalUnit\n",
        f"dn: {SERVICE}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\n"
        f"userPassword: {SERVICE_PASSWORD}\n",
    )
    return "\n".join([*tops, *entries])


def person(name: str, password: str) -> str:
    """A user entry in LDIF; a comma in the name is escaped with a backslash."""
    plain = name.replace("\\", "")
    return (
        f"dn: uid={name},ou=people,{SUFFIX}\nobjectClass: inetOrgPerson\ncn: {plain}\nsn: {plain}\n"
        f"mail: {plain}@example.org\nuserPassword: {password}\n"
    )


def group(name: str, *members: str) -> str:
    """A group entry in LDIF."""
    lines = "".join(f"member: uid={member},ou=people,{SUFFIX}\n" for member in members)
    return f"dn: cn={name},ou=groups,{SUFFIX}\nobjectClass: groupOfNames\n{lines}"


class Slapd:
    """A slapd process, which can be stopped and started again on its port."""

    def __init__(self, folder: Path, ldif: str, *, tls: str = "", is_tls_at_once: bool = False) -> None:
        (folder / "data").mkdir()
        self._folder = folder
        self._scheme = "ldaps" if is_tls_at_once else "ldap"
        self._configuration = folder / "slapd.conf"
        self._configuration.write_text(
            _CONFIGURATION.format(schemas=_SCHEMAS, modules=_MODULES, folder=folder, suffix=SUFFIX, tls=tls)
        )
        (folder / "people.ldif").write_text(ldif)
        assert SLAPD is not None
        # Under this name it loads the directory, and ends.
        command = ["-Ta", "-f", str(self._configuration), "-l", str(folder / "people.ldif")]
        subprocess.run([SLAPD, *command], check=True, capture_output=True, timeout=60)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server."""
        assert SLAPD is not None
        address = f"{self._scheme}://127.0.0.1:{self.port}"
        with (self._folder / "slapd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [SLAPD, "-d", "256", "-f", str(self._configuration), "-h", address], stdout=log, stderr=log
            )
        end = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None, (self._folder / "slapd.log").read_text()
                assert time.monotonic() < end
                time.sleep(0.05)

    @property
    def log(self) -> str:
        """The log of requests."""
        return (self._folder / "slapd.log").read_text(errors="replace")

    def freeze(self) -> None:
        """Stop the process with a signal: connections are accepted by the kernel, requests not answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue after `freeze`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
