"""Commands for users and limits that read present values before they change them."""

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run
from warren.cli.operator.failures import (
    REFUSED,
    USAGE,
    Failure,
    ObjectNotFound,
    ToolFailure,
    failed_for_programs,
)
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.options import secret
from warren.cli.operator.parameters import USER, flag, named, not_empty, object_of, option
from warren.cli.operator.rabbitmq_facts import this_node
from warren.cli.operator.session import Arguments, Session

_USER_PATH = "/users/{user}"
_VHOST_LIMITS = "/vhost-limits/{vhost}"
_USER_LIMITS = "/user-limits/{user}"
_PASSWORD = named("password", required=False)
_LIMITS = named("limits")


def _add(session: Session, arguments: Arguments) -> None:
    user, path = arguments["user"], filled(_USER_PATH, arguments)
    try:
        session.api.get(path)
    except ObjectNotFound:
        body = _credentials(arguments) | {"tags": arguments["tags"]}
        session.api.send("PUT", path, body)
        session.say(f"user {user}: added; 'warren permissions set' grants it permissions in a vhost")
        return
    if arguments["is_known_as"]:
        if session.is_json:
            raise failed_for_programs(f"User {user} already exists", this_node(session))
        sentence = f'User "{user}" already exists'
        raise ToolFailure(sentence, REFUSED, tool_status=70, has_heading=True)
    raise Failure(f"user {user!r} exists; 'warren users change-password' and 'set-tags' modify a user")


def _change_password(session: Session, arguments: Arguments) -> None:
    user = _user(session, arguments)
    body = {"password": _password(arguments), "tags": user["tags"]}
    session.api.send("PUT", filled(_USER_PATH, arguments), body)
    session.say(f"user {user['name']}: password changed")


def _clear_password(session: Session, arguments: Arguments) -> None:
    user = _user(session, arguments)
    session.api.send("PUT", filled(_USER_PATH, arguments), {"password_hash": "", "tags": user["tags"]})
    session.say(f"user {user['name']}: password removed; password logins are disabled")


def _set_tags(session: Session, arguments: Arguments) -> None:
    user = _user(session, arguments)
    tags = ",".join(arguments["tags"])
    # A broker that hides hashes keeps the present one if none is sent.
    hashed = {name: user[name] for name in ("password_hash", "hashing_algorithm") if "password_hash" in user}
    body = hashed | {"tags": tags}
    session.api.send("PUT", filled(_USER_PATH, arguments), body)
    session.say(f"user {user['name']}: tags are {tags}" if tags else f"user {user['name']}: has no tags")


def _set_limits(path: str) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        limits = object_of(arguments["limits"], "LIMITS")
        where = filled(path, arguments)
        for name, value in limits.items():
            session.api.send("PUT", where + filled("/{name}", {"name": name}), {"value": value})
        session.say(f"set: {', '.join(limits)}")

    return does


def _clear_limits(path: str) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        where, chosen = filled(path, arguments), arguments.get("limit", "all")
        names = [name for row in session.api.get(where) for name in row["value"]]
        if chosen not in ("all", *names) and arguments["is_known_as"]:
            return
        if chosen not in ("all", *names):
            raise Failure(f"no limit {chosen!r} is set; 'warren limits list' shows the limits that are set")
        gone = names if chosen == "all" else [chosen]
        for name in gone:
            session.api.send("DELETE", where + filled("/{name}", {"name": name}))
        session.say(f"removed: {', '.join(gone)}" if gone else "no limits were set")

    return does


def _user(session: Session, arguments: Arguments) -> Row:
    user: Row = session.api.get(filled(_USER_PATH, arguments))
    return user


def _credentials(arguments: Arguments) -> Row:
    """Return the password of a new user; rabbitmqctl takes an empty one, by which nobody can log in."""
    if arguments.get("pre_hashed_password"):
        return {"password_hash": _password(arguments)}
    if arguments["is_known_as"] and arguments["password"] == "":
        return {"password_hash": ""}
    return {"password": _password(arguments)}


def _password(arguments: Arguments) -> str:
    """Return the given or prompted password; an empty one is refused, because it matches no login."""
    given = arguments["password"]
    password: str = secret(f"New password of {arguments['user']}") if given is None else given
    if not password and given is None and arguments["is_known_as"]:
        sentence = "Password is not provided via argument or stdin"
        raise ToolFailure(sentence, USAGE, tool_status=65, has_heading=True)
    if not password:
        raise Failure(
            "the password must not be empty; to disable password login, use 'warren users clear-password'",
            USAGE,
        )
    return password


ACCOUNTS: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="users",
        name="add",
        known_as="add_user",
        does=_add,
        text="Add a user. The password is prompted for, or read from standard input, if it is not given.",
        takes=(
            named("user", callback=not_empty("user")),
            _PASSWORD,
            option("--tags", "tags, separated by commas: monitoring,policymaker", default=""),
        ),
        takes_known_as=(
            flag("--pre-hashed-password", text="the password is its hash, as hash_password prints"),
        ),
    ),
    CustomCommand(
        group="users",
        name="change-password",
        known_as="change_password",
        does=_change_password,
        text="Change a password, which is prompted for or read from standard input if it is not given.",
        takes=(USER, _PASSWORD),
    ),
    CustomCommand(
        group="users",
        name="clear-password",
        known_as="clear_password",
        does=_clear_password,
        text="Remove the password of a user, which disables password login.",
        takes=(USER,),
    ),
    CustomCommand(
        group="users",
        name="set-tags",
        known_as="set_user_tags",
        does=_set_tags,
        text="Set the tags of a user; without TAGS, remove all.",
        takes=(USER, named("tags", nargs=-1)),
    ),
    CustomCommand(
        group="limits",
        name="set",
        known_as="set_vhost_limits",
        is_in_vhost=True,
        takes=(_LIMITS,),
        text='Limit a virtual host; LIMITS is as {"max-connections": 100, "max-queues": 50}.',
        does=_set_limits(_VHOST_LIMITS),
    ),
    CustomCommand(
        group="limits",
        name="clear",
        known_as="clear_vhost_limits",
        is_in_vhost=True,
        text="Remove one limit of a virtual host, or all.",
        takes=(named("limit", default="all"),),
        takes_instead=(),
        does=_clear_limits(_VHOST_LIMITS),
    ),
    CustomCommand(
        group="limits",
        name="set-user",
        known_as="set_user_limits",
        takes=(USER, _LIMITS),
        text='Limit a user; LIMITS is as {"max-connections": 100, "max-channels": 50}.',
        does=_set_limits(_USER_LIMITS),
    ),
    CustomCommand(
        group="limits",
        name="clear-user",
        known_as="clear_user_limits",
        takes=(USER, named("limit", default="all")),
        takes_instead=(USER, named("limit")),
        text="Remove one limit of a user, or all.",
        does=_clear_limits(_USER_LIMITS),
    ),
)
