"""The sentences with which rabbitmqctl says what a changing command does, before it does it (3.10.8, 4.3.6).

A script that looks for them finds them when it calls a command by its name in rabbitmqctl, which says nothing
more if it succeeds, except where rabbitmqctl does.
"""

from collections.abc import Callable, Mapping

from warren.cli.operator.session import Arguments

_SENTENCES: Mapping[str, str] = {
    "add_user": 'Adding user "{user}" ...',
    "change_password": 'Changing password for user "{user}" ...',
    "clear_password": 'Clearing password for user "{user}" ...',
    "authenticate_user": 'Authenticating user "{user}" ...',
    "set_user_tags": 'Setting tags for user "{user}" to [{tags}] ...',
    "delete_user": 'Deleting user "{user}" ...',
    "add_vhost": 'Adding vhost "{vhost}" ...',
    "enable_vhost_deletion_protection": (
        'Protecting virtual host "{vhost}" from removal by updating its metadata...'
    ),
    "disable_vhost_deletion_protection": (
        'Removing deletion protection from virtual host "{vhost}" by updating its metadata...'
    ),
    "delete_vhost": 'Deleting vhost "{vhost}" ...',
    "set_vhost_tags": 'Setting tags for virtual host "{vhost}" to [{tags}] ...',
    "set_permissions": 'Setting permissions for user "{user}" in vhost "{vhost}" ...',
    "clear_permissions": 'Clearing permissions for user "{user}" in vhost "{vhost}" ...',
    "set_topic_permissions": (
        'Setting topic permissions on "{exchange}" for user "{user}" in vhost "{vhost}" ...'
    ),
    "set_vhost_limits": 'Setting vhost limits to "{limits}" for vhost "{vhost}" ...',
    "clear_vhost_limits": 'Clearing vhost "{vhost}" limits ...',
    "set_user_limits": 'Setting user limits to "{limits}" for user "{user}" ...',
    "set_policy": (
        'Setting policy "{name}" for pattern "{pattern}" to "{definition}" with priority "{priority}" for '
        'vhost "{vhost}" ...'
    ),
    "clear_policy": 'Clearing policy "{name}" on vhost "{vhost}" ...',
    "set_operator_policy": (
        'Setting operator policy override "{name}" for pattern "{pattern}" to "{definition}" with priority '
        '"{priority}" for vhost "{vhost}" ...'
    ),
    "clear_operator_policy": 'Clearing operator policy "{name}" on vhost "{vhost}" ...',
    # The value may have passwords, which rabbitmqctl shows.
    "set_parameter": (
        'Setting runtime parameter "{name}" for component "{component}" to "***" in vhost "{vhost}" ...'
    ),
    "clear_parameter": (
        'Clearing runtime parameter "{name}" for component "{component}" on vhost "{vhost}" ...'
    ),
    "set_global_parameter": 'Setting global runtime parameter "{name}" to "{value}" ...',
    "clear_global_parameter": 'Clearing global runtime parameter "{name}" ...',
    "trace_on": 'Starting tracing for vhost "{vhost}" ...',
    "trace_off": 'Stopping tracing for vhost "{vhost}" ...',
    "close_connection": "Closing connection {name}, reason: {reason}...",
    "close_all_user_connections": "Closing connections of user {user}, reason: {reason}...",
    "delete_queue": "Deleting queue '{queue}' on vhost '{vhost}' ...",
    "purge_queue": "Purging queue '{queue}' in vhost '{vhost}' ...",
    "add_super_stream": "Adding a super stream...",
    "delete_super_stream": "Deleting a super stream...",
    "set_cluster_name": "Setting cluster name to {name} ...",
    "set_log_level": 'Setting log level to "{level}" ...',
}
_ENDINGS: Mapping[str, str] = {
    "add_user": (
        "Done. Don't forget to grant the user permissions to some virtual hosts! "
        "See 'rabbitmqctl help set_permissions' to learn more."
    ),
    "authenticate_user": "Success",
    "add_super_stream": "Super stream {name} has been created",
    "delete_super_stream": "Super stream {name} has been deleted",
}


def sentence_of(command: str, arguments: Arguments) -> str:
    """Return what rabbitmqctl says before it does `command`; empty if it says nothing, or it is not known."""
    choose = _CHOICES.get(command)
    sentence = _SENTENCES.get(command, "") if choose is None else choose(arguments)
    return sentence.format_map({name: _shown(value) for name, value in arguments.items()})


def ending_of(command: str, arguments: Arguments) -> str:
    """Return what rabbitmqctl says after `command` has succeeded; empty if nothing."""
    return _ENDINGS.get(command, "").format_map(arguments)


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _clear_user_limits(arguments: Arguments) -> str:
    if arguments["limit"] == "all":
        return 'Clearing all limits for user "{user}" ...'
    return 'Clearing "{limit}" limit for user "{user}" ...'


def _clear_topic_permissions(arguments: Arguments) -> str:
    if arguments["exchange"]:
        return 'Clearing topic permissions on "{exchange}" for user "{user}" in vhost "{vhost}" ...'
    return 'Clearing topic permissions for user "{user}" in vhost "{vhost}" ...'


def _enable_feature_flag(arguments: Arguments) -> str:
    if arguments["name"] == "all":
        return "Enabling all feature flags ..."
    return 'Enabling feature flag "{name}" ...'


_CHOICES: Mapping[str, Callable[[Arguments], str]] = {
    "clear_user_limits": _clear_user_limits,
    "clear_topic_permissions": _clear_topic_permissions,
    "enable_feature_flag": _enable_feature_flag,
}
