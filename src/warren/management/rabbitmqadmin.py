#!/usr/bin/env python3
"""Manages a broker from a shell, with the commands and options of RabbitMQ's tool of this name.

The file needs nothing but Python 3.9; the broker serves it at /cli/rabbitmqadmin.
"""

from __future__ import annotations

import argparse
import base64
import configparser
import http.client
import json
import os
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

VERSION = "3.10.8"
DEFAULTS: dict[str, Any] = {
    "hostname": "localhost", "port": "15672", "path_prefix": "", "username": "guest", "password": "guest",
    "vhost": "", "declare_vhost": "/", "base_uri": "", "quiet": False, "ssl": False, "ssl_key_file": "",
    "ssl_cert_file": "", "ssl_ca_cert_file": "", "ssl_disable_hostname_verification": False,
    "ssl_insecure": False, "request_timeout": "120", "format": "table", "sort": "", "sort_reverse": False,
    "depth": "1",
}  # fmt: skip
FLAGS = ("quiet", "ssl", "ssl_disable_hostname_verification", "ssl_insecure", "sort_reverse")
SHORT = {
    "hostname": "-H", "port": "-P", "vhost": "-V", "username": "-u", "password": "-p", "base_uri": "-U",
    "quiet": "-q", "ssl": "-s", "ssl_insecure": "-k", "request_timeout": "-t", "format": "-f", "sort": "-S",
    "sort_reverse": "-R", "depth": "-d",
}  # fmt: skip
HTTP_NAMES = {"vhost_limits": "vhost-limits", "operator_policies": "operator-policies"}
# The lists, with the columns that are shown by default.
LISTS: dict[str, tuple[str, ...]] = {
    "connections": ("name", "user", "channels"), "channels": ("name", "user"), "consumers": (),
    "exchanges": ("name", "type"), "queues": ("name", "messages"),
    "bindings": ("source", "destination", "routing_key"), "users": (), "vhosts": ("name", "messages"),
    "permissions": (), "nodes": ("name", "type", "mem_used"), "parameters": (), "policies": (),
    "operator_policies": (), "vhost_limits": (),
}  # fmt: skip
OVERVIEW = ("rabbitmq_version", "cluster_name", "queue_totals.messages", "object_totals.queues")
# The lists that -V restricts to a virtual host.
IN_VHOST = ("exchanges", "queues", "bindings", "policies", "operator_policies", "vhost_limits")
NAMELESS = ("consumers", "bindings", "permissions", "vhost_limits")
# Columns that hold objects, shown as JSON, and the columns that come first.
JSON_COLUMNS = ("definition", "value")
FIRST = ("vhost", "name", "routing_key", "exchange")


class ObjectType(NamedTuple):
    """A kind of object to declare or delete: its path and its fields, which are required if None."""

    path: str
    takes: dict[str, Any]
    deleted_by: dict[str, Any]
    method: str = "PUT"


NAME = {"name": None}
POLICY = {"name": None, "pattern": None, "definition": None, "priority": "0", "apply-to": "all"}
BINDING = "/bindings/{vhost}/e/{source}/{kind}/{destination}"
KINDS = {
    "exchange": ObjectType("/exchanges/{vhost}/{name}", {
        **NAME, "type": None, "auto_delete": "false", "durable": "true", "internal": "false",
        "arguments": "{}",
    }, NAME),
    "queue": ObjectType("/queues/{vhost}/{name}", {
        **NAME, "auto_delete": "false", "durable": "true", "arguments": "{}", "node": "", "queue_type": "",
    }, NAME),
    "binding": ObjectType(BINDING, {
        "source": None, "destination": None, "destination_type": "queue", "routing_key": "",
        "arguments": "{}",
    }, {
        "source": None, "destination_type": None, "destination": None, "properties_key": "~",
    }, "POST"),
    "vhost": ObjectType("/vhosts/{name}", {**NAME, "tracing": "false"}, NAME),
    "user": ObjectType("/users/{name}", {
        **NAME, "password": "", "password_hash": "", "tags": None, "hashing_algorithm": "",
    }, NAME),
    "permission": ObjectType("/permissions/{vhost}/{user}", {
        "vhost": None, "user": None, "configure": None, "write": None, "read": None,
    }, {"vhost": None, "user": None}),
    "parameter": ObjectType("/parameters/{component}/{vhost}/{name}", {
        "component": None, **NAME, "value": None,
    }, {"component": None, **NAME}),
    "policy": ObjectType("/policies/{vhost}/{name}", POLICY, NAME),
    "operator_policy": ObjectType("/operator-policies/{vhost}/{name}", POLICY, NAME),
    "vhost_limit": ObjectType("/vhost-limits/{vhost}/{name}", {
        "vhost": None, **NAME, "value": None,
    }, {"vhost": None, **NAME}),
}  # fmt: skip
PUBLISH = {
    "routing_key": None, "payload": "", "properties": "{}", "exchange": "amq.default",
    "payload_encoding": "string",
}  # fmt: skip
GET = {"queue": None, "count": "1", "ackmode": "ack_requeue_true", "payload_file": "", "encoding": "auto"}
IN_JSON = ("arguments", "definition", "value", "properties", "priority")
# Fields that are part of the path instead of the body.
IN_PATH = ("name", "vhost", "user", "component", "source", "destination", "destination_type", "kind")


class CommandFailed(Exception):
    """The command failed; the text is printed as it is."""


def usage(text: str) -> CommandFailed:
    """The command line is invalid."""
    return CommandFailed(f"\nERROR: {text}\n\nrabbitmqadmin --help for help\n")


class ApiClient:
    """A client of the HTTP API of one broker."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        base = urlsplit(options["base_uri"])
        if base.path not in ("", "/"):
            print("WARNING: the path in --base-uri is ignored; --path-prefix is for it", file=sys.stderr)
        self.host = base.hostname or options["hostname"]
        self._is_tls = options["ssl"] or base.scheme == "https"
        self._port = base.port or int(options["port"])
        name, password = base.username or options["username"], base.password or options["password"]
        self._authorization = base64.b64encode(f"{name}:{password}".encode()).decode("ascii")

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The body of the response; raises CommandFailed for an error status or a failed connection."""
        target = f"{self._options['path_prefix']}/api{path}"
        headers = {"authorization": f"Basic {self._authorization}", "content-type": "application/json"}
        connection = self._connection()
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise CommandFailed(f"*** Could not connect: {error}{self._hint(error)}\n") from None
        finally:
            connection.close()
        if answer.status < 300:
            return content
        if answer.status == 401:
            raise CommandFailed(f"*** Access refused: {target}\n")
        if answer.status == 404:
            raise CommandFailed(f"*** Not found: {target}\n")
        raise CommandFailed(f"*** {_reason(content) or f'{answer.status} {answer.reason} for {target}'}\n")

    def _connection(self) -> http.client.HTTPConnection:
        timeout_s = float(self._options["request_timeout"])
        if not self._is_tls:
            return http.client.HTTPConnection(self.host, self._port, timeout=timeout_s)
        return http.client.HTTPSConnection(self.host, self._port, timeout=timeout_s, context=self._context())

    def _context(self) -> ssl.SSLContext:
        """The TLS context: how the broker's certificate is verified, and the client certificate."""
        options = self._options
        authority, shown = options["ssl_ca_cert_file"], options["ssl_cert_file"]
        key = options["ssl_key_file"] or shown
        for name, file in (("ca-cert", authority), ("cert", shown), ("key", key)):
            if file and not os.path.isfile(file):
                raise CommandFailed(f"ERROR: --ssl-{name}-file {file}: there is no such file")
        try:
            context = ssl.create_default_context(cafile=authority or None)
        except ssl.SSLError:
            raise CommandFailed(f"ERROR: --ssl-ca-cert-file {authority}: no certificates in PEM") from None
        if options["ssl_insecure"] or options["ssl_disable_hostname_verification"]:
            context.check_hostname = False
        if options["ssl_insecure"]:
            context.verify_mode = ssl.CERT_NONE
        try:
            if shown:
                context.load_cert_chain(shown, key)
        except ssl.SSLError as error:
            text = f"ERROR: --ssl-cert-file {shown}, --ssl-key-file {key}: cannot be used: {error.reason}"
            raise CommandFailed(text) from None
        return context

    def _hint(self, error: Exception) -> str:
        """Advice about a TLS connection that failed; empty for other errors."""
        if not self._is_tls or isinstance(error, ConnectionRefusedError):
            return ""
        if isinstance(error, ssl.SSLCertVerificationError):
            return "; set the trusted CA certificates with --ssl-ca-cert-file"
        if self._options["ssl_cert_file"]:
            return "; the server may not trust the certificate of --ssl-cert-file"
        return "; if it requires a client certificate, set it with --ssl-cert-file and --ssl-key-file"


class Commands:
    """The commands, each called with the words that follow it."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._broker = ApiClient(options)

    def list(self, words: Sequence[str]) -> None:
        """list WHAT [COLUMN]..."""
        what, columns = _first(words, "list"), tuple(words[1:])
        if what not in LISTS:
            raise usage(f"Don't know how to list {what}")
        path = "/" + HTTP_NAMES.get(what, what)
        if self._options["vhost"] and what in IN_VHOST:
            path += "/" + _quoted(self._options["vhost"])
        chosen = columns or LISTS[what]
        query = {"columns": ",".join(chosen)} if chosen else {}
        if self._options["sort"]:
            query["sort"] = self._options["sort"]
        if self._options["sort_reverse"]:
            query["sort_reverse"] = "true"
        answer = self._broker.ask("GET", path + ("?" + urlencode(query, safe=",") if query else ""))
        self._print(answer, chosen, what not in NAMELESS)

    def show(self, words: Sequence[str]) -> None:
        """show overview [COLUMN]..."""
        if _first(words, "show") != "overview":
            raise usage(f"Don't know how to show {words[0]}")
        chosen = tuple(words[1:]) or OVERVIEW
        answer = self._broker.ask("GET", "/overview?columns=" + ",".join(chosen))
        self._print(b"[" + answer + b"]", chosen, is_named=False)

    def declare(self, words: Sequence[str]) -> None:
        """declare WHAT NAME=VALUE..."""
        what, kind = _kind(words, "declare")
        given = self._taken(words[1:], kind.takes)
        body = {
            name: _value(name, text)
            for name, text in given.items()
            if name not in IN_PATH and name != "queue_type" and (text != "" or kind.takes[name] != "")
        }
        if given.get("queue_type"):
            body["arguments"]["x-queue-type"] = given["queue_type"]
        self._broker.ask(kind.method, self._path(kind.path, given), json.dumps(body).encode())
        self._say(f"{what} declared")

    def delete(self, words: Sequence[str]) -> None:
        """delete WHAT NAME=VALUE..."""
        what, kind = _kind(words, "delete")
        given = self._taken(words[1:], kind.deleted_by)
        path = kind.path + ("/{properties_key}" if what == "binding" else "")
        self._broker.ask("DELETE", self._path(path, given))
        self._say(f"{what} deleted")

    def close(self, words: Sequence[str]) -> None:
        """close connection name=NAME"""
        if _first(words, "close") != "connection":
            raise usage(f"Don't know how to close {words[0]}")
        self._broker.ask("DELETE", self._path("/connections/{name}", self._taken(words[1:], NAME)))
        self._say("connection closed")

    def purge(self, words: Sequence[str]) -> None:
        """purge queue name=NAME"""
        if _first(words, "purge") != "queue":
            raise usage(f"Don't know how to purge {words[0]}")
        self._broker.ask(
            "DELETE", self._path("/queues/{vhost}/{name}/contents", self._taken(words[1:], NAME))
        )
        self._say("queue purged")

    def publish(self, words: Sequence[str]) -> None:
        """publish routing_key=KEY [payload=TEXT ...]; without a payload, standard input."""
        given = self._taken(words, PUBLISH)
        if "payload" not in dict(word.partition("=")[::2] for word in words):
            data = sys.stdin.buffer.read()
            if given["payload_encoding"] == "string":
                given |= {"payload": base64.b64encode(data).decode("ascii"), "payload_encoding": "base64"}
            else:
                given["payload"] = data.decode("ascii", "replace")
        body = {name: _value(name, text) for name, text in given.items()}
        path = self._path("/exchanges/{vhost}/{exchange}/publish", given)
        answer = json.loads(self._broker.ask("POST", path, json.dumps(body).encode()))
        self._say("Message published" if answer["routed"] else "Message published but NOT routed")
        if "alarms" in answer:
            self._say(f"Alarm: {', '.join(answer['alarms'])}. AMQP publishers are blocked.")

    def get(self, words: Sequence[str]) -> None:
        """get queue=NAME [count=NUMBER ackmode=MODE payload_file=FILE encoding=ENCODING]"""
        given = self._taken(words, GET)
        if given["payload_file"] and given["count"] != "1":
            raise usage("If payload_file is specified, count must not be set")
        body = {name: given[name] for name in ("count", "ackmode", "encoding")}
        path = self._path("/queues/{vhost}/{queue}/get", given)
        answer = self._broker.ask("POST", path, json.dumps(body).encode())
        if not given["payload_file"]:
            self._print(answer, (), is_named=False)
            return
        rows = json.loads(answer)
        for row in rows:
            payload, encoding = row.pop("payload"), row.pop("payload_encoding")
            with open(given["payload_file"], "wb") as file:
                file.write(base64.b64decode(payload) if encoding == "base64" else payload.encode())
            row.pop("properties", None)
        self._print(json.dumps(rows).encode(), (), is_named=False)

    def export(self, words: Sequence[str]) -> None:
        """export FILE"""
        file = _first(words, "export")
        content = self._broker.ask("GET", self._definitions())
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as written:
            written.write(content)
        self._say(f'Exported definitions for {self._broker.host} to "{file}"')

    def import_(self, words: Sequence[str]) -> None:
        """import FILE"""
        file = _first(words, "import")
        with open(file, "rb") as read:
            self._broker.ask("POST", self._definitions(), read.read())
        self._say(f'Imported definitions into {self._broker.host} from "{file}"')

    def _definitions(self) -> str:
        vhost = self._options["vhost"]
        return "/definitions" + (f"/{_quoted(vhost)}" if vhost else "")

    def _taken(self, words: Sequence[str], takes: dict[str, Any]) -> dict[str, str]:
        """The values given in `words`, with the defaults of those that are missing."""
        given = {name: value for name, value in takes.items() if value is not None}
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise usage(f'Argument "{word}" not in the name=value format')
            if name not in takes:
                raise usage(f'Argument "{name}" is not recognised')
            given[name] = value
        for name in takes:
            if name not in given:
                raise usage(f'mandatory argument "{name}" is required')
        return given

    def _path(self, path: str, given: dict[str, str]) -> str:
        vhost = self._options["vhost"] or self._options["declare_vhost"]
        places = {"vhost": vhost, "kind": given.get("destination_type", "")[:1], **given}
        return path.format(**{name: _quoted(value) for name, value in places.items()})

    def _say(self, text: str) -> None:
        if not self._options["quiet"]:
            print(text)

    def _print(self, answer: bytes, columns: Sequence[str], is_named: bool) -> None:
        form = self._options["format"]
        if form == "raw_json":
            print(answer.decode())
        elif form == "pretty_json":
            print(json.dumps(json.loads(answer), indent=2))
        elif form == "bash":
            if is_named:
                print(" ".join(str(row["name"]) for row in json.loads(answer)))
        else:
            depth = max([int(self._options["depth"]), *(name.count(".") + 1 for name in columns)])
            rows = [_flat(row, depth) for row in json.loads(answer)]
            names = list(columns) or _names(rows)
            cells = [[row.get(name, "") for name in names] for row in rows]
            if cells or form == "tsv":
                FORMATS[form](names, cells)
            else:
                self._say("No items")


def _reason(content: bytes) -> str:
    """The reason in an error response; empty if it has none."""
    try:
        return str(json.loads(content)["reason"])
    except (ValueError, KeyError, TypeError):
        return ""


def _first(words: Sequence[str], verb: str) -> str:
    if not words:
        raise usage(f"{verb} what?")
    return words[0]


def _kind(words: Sequence[str], verb: str) -> tuple[str, ObjectType]:
    what = _first(words, verb)
    if what not in KINDS:
        raise usage(f"Don't know how to {verb} {what}")
    return what, KINDS[what]


def _value(name: str, text: str) -> Any:
    if name not in IN_JSON:
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise CommandFailed(f"ERROR: Could not parse JSON:\n  {text}") from None


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _flat(row: dict[str, Any], depth: int, prefix: str = "") -> dict[str, str]:
    """`row` with the fields of nested objects, to `depth` levels, under names with dots."""
    found: dict[str, str] = {}
    for name, value in row.items():
        path = prefix + name
        if path in JSON_COLUMNS:
            found[path] = json.dumps(value)
        elif isinstance(value, dict):
            if depth > 1:
                found.update(_flat(value, depth - 1, path + "."))
        elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            found[path] = json.dumps(value)
        elif isinstance(value, list):
            found[path] = " ".join(map(str, value))
        else:
            found[path] = "" if value is None else str(value)
    return found


def _names(rows: Sequence[dict[str, str]]) -> list[str]:
    found = {name for row in rows for name in row}
    return [name for name in FIRST if name in found] + sorted(found.difference(FIRST))


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(names, *rows)]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    print(border)
    print("| " + " | ".join(map(_centred, names, widths)) + " |")
    print(border)
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    print(border)


def _centred(name: str, width: int) -> str:
    """`name` centred in `width` columns, with the odd space after it."""
    return (" " * ((width - len(name)) // 2) + name).ljust(width)


def _tsv(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (names, *rows):
        print("\t".join(row))


def _long(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, names))
    print("\n" + "-" * 80 + "\n")
    for row in rows:
        for name, cell in zip(names, row):
            print(f"{name.rjust(width)}: {cell}")
        print("\n" + "-" * 80 + "\n")


def _kvp(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        print(" ".join(f'{name}="{cell}"' for name, cell in zip(names, row)))


FORMATS: dict[str, Callable[[Sequence[str], Sequence[Sequence[str]]], None]] = {
    "table": _table, "tsv": _tsv, "long": _long, "kvp": _kvp,
}  # fmt: skip
ALL_FORMATS = (*FORMATS, "raw_json", "pretty_json", "bash")
VERBS = ("list", "show", "declare", "delete", "close", "purge", "publish", "get", "export", "import", "help")


def subcommands() -> str:
    """The usage lines of all commands."""
    lines = [f"list {what} [<column>...]" for what in LISTS] + ["show overview [<column>...]"]
    for verb in ("declare", "delete"):
        for what, kind in KINDS.items():
            lines.append(f"{verb} {what} " + _taking(kind.takes if verb == "declare" else kind.deleted_by))
    lines += ["close connection name=...", "purge queue name=...", "export <file>", "import <file>"]
    lines += ["publish " + _taking(PUBLISH), "get " + _taking(GET)]
    return "\n".join("  " + line for line in lines)


def _taking(takes: dict[str, Any]) -> str:
    needed = " ".join(f"{name}=..." for name, value in takes.items() if value is None)
    other = " ".join(f"{name}=..." for name, value in takes.items() if value is not None)
    return f"{needed} [{other}]" if other else needed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rabbitmqadmin", add_help=True, allow_abbrev=False,
        epilog="'rabbitmqadmin help subcommands' shows the subcommands",
        usage="rabbitmqadmin [options] subcommand", conflict_handler="resolve",
    )  # fmt: skip
    parser.add_argument("--config", "-c", metavar="FILE", help="configuration file [~/.rabbitmqadmin.conf]")
    parser.add_argument("--node", "-N", default="default", help="section of the configuration file [default]")
    for name, default in DEFAULTS.items():
        if name == "declare_vhost":
            continue
        flags = ["--" + {"hostname": "host"}.get(name, name).replace("_", "-")]
        flags += [SHORT[name]] if name in SHORT else []
        if name in FLAGS:
            parser.add_argument(*flags, dest=name, action="store_true", default=None)
        else:
            choices = ALL_FORMATS if name == "format" else None
            parser.add_argument(*flags, dest=name, choices=choices, help=f"[{default}]")
    parser.add_argument(
        "--bash-completion", action="store_true", help="print commands for completion in bash"
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}, of Warren")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="subcommand")
    return parser


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """The options: the defaults, overridden by the configuration file, then by the command line."""
    options = dict(DEFAULTS)
    file = given.config or os.path.expanduser("~/.rabbitmqadmin.conf")
    if given.config or os.path.exists(file):
        read = configparser.ConfigParser(inline_comment_prefixes=("#",), interpolation=None)
        if not read.read(file) or not read.has_section(given.node):
            if given.config or given.node != "default":
                raise CommandFailed(f"ERROR: no section [{given.node}] can be read in {file}")
        else:
            for name in read.options(given.node):
                section = read[given.node]
                options[name] = section.getboolean(name) if name in FLAGS else section[name]
    options.update({name: value for name, value in vars(given).items() if value is not None})
    return options


def main() -> None:
    """Run the command given on the command line."""
    try:
        given = _parser().parse_args()
        words = given.words
        if given.bash_completion:
            print(f"complete -W '{' '.join((*VERBS, *LISTS, *KINDS))}' rabbitmqadmin")
        elif not words or words[0] not in VERBS:
            raise usage(f"Action {words[0]} not understood" if words else "Action not specified")
        elif words[0] == "help":
            print("rabbitmqadmin [options] subcommand\n\n" + subcommands())
        else:
            name = {"import": "import_"}.get(words[0], words[0])
            getattr(Commands(_options(given)), name)(words[1:])
    except CommandFailed as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
