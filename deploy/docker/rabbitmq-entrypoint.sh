#!/bin/sh
# Starts Warren where a container of RabbitMQ's official image was started: with the same variables, the same files in
# /etc/rabbitmq, the same volume, and the same commands.
#
#     rabbitmq-entrypoint.sh rabbitmq-server        runs the broker
#     rabbitmq-entrypoint.sh COMMAND …              runs any other command, such as rabbitmqctl
#     rabbitmq-server [-detached]                   runs the broker, in a script of the container also behind it
#
# SYS_PREFIX is put before /etc/rabbitmq and /var/lib/rabbitmq, as in RabbitMQ.
set -eu

if [ "${0##*/}" = rabbitmq-server ] && [ "${1:-}" != rabbitmq-server ]; then set -- rabbitmq-server "$@"; fi
etc=${SYS_PREFIX:-}/etc/rabbitmq data=${SYS_PREFIX:-}/var/lib/rabbitmq

# The image begins as root so that it may take over a volume, and goes on as the user that owns it. A container that
# was started with another user goes on as that one.
case ${1:-} in
rabbitmq* | warren)
    if [ "$(id -u)" = 0 ] && id -u rabbitmq >/dev/null 2>&1 && [ -z "${SYS_PREFIX:-}" ]; then
        find "$data" \! -user rabbitmq -exec chown rabbitmq '{}' +
        exec setpriv --reuid rabbitmq --regid rabbitmq --init-groups "$0" "$@"
    fi
    ;;
esac

# Variables of rabbitmq-env.conf, which may be without RABBITMQ_ there; those of the container prevail.
file=${RABBITMQ_CONF_ENV_FILE:-$etc/rabbitmq-env.conf}
unset RABBITMQ_CONF_ENV_FILE
if [ -f "$file" ]; then
    case $file in */*) ;; *) file=./$file ;; esac
    for name in $(sed -n 's/^[[:space:]]*\(export[[:space:]]\{1,\}\)\{0,1\}\([A-Z_]\{1,\}\)=.*/\2/p' "$file"); do
        variable=RABBITMQ_${name#RABBITMQ_}
        eval "given=\${$variable:-}"
        [ -z "$given" ] || continue
        # shellcheck source=/dev/null
        value=$(. "$file" && eval "printf %s \"\${$name}\"")
        export "$variable=$value"
    done
fi

# What is there of the files that RabbitMQ reads.
use() { # VARIABLE PATH: set the variable, unless it is set, if there is such a file or directory
    eval "given=\${$1:-}"
    if [ -z "$given" ] && [ -e "$2" ]; then export "$1=$2"; fi
}
use RABBITMQ_CONFIG_FILE "$etc/rabbitmq.conf"
use RABBITMQ_CONFIG_FILE "$etc/rabbitmq.config"
use RABBITMQ_CONFIG_FILES "$etc/conf.d"
use RABBITMQ_ADVANCED_CONFIG_FILE "$etc/advanced.config"
use RABBITMQ_ENABLED_PLUGINS_FILE "$etc/enabled_plugins"

# Warren's data are beside those that RabbitMQ may have left in the volume.
if [ -z "${WARREN_DATA_DIR:-}${RABBITMQ_MNESIA_BASE:-}${RABBITMQ_MNESIA_DIR:-}" ]; then
    export WARREN_DATA_DIR="$data/warren"
fi
# Where RabbitMQ's is: scripts wait for the broker with `rabbitmqctl wait`.
if [ -z "${RABBITMQ_PID_FILE:-}" ] && mkdir -p "$data/mnesia" 2>/dev/null && [ -w "$data/mnesia" ]; then
    host=$(uname -n)
    export RABBITMQ_PID_FILE="$data/mnesia/${RABBITMQ_NODENAME:-rabbit@${host%%.*}}.pid"
fi
# Where the cookie of a cluster is.
[ -z "${SYS_PREFIX:-}" ] || export HOME="$data"
unset SYS_PREFIX

if [ "${1:-}" = rabbitmq-server ]; then
    shift
    if [ "${1:-}" = -detached ]; then
        shift
        setsid warren serve "$@" </dev/null >/dev/null 2>&1 &
        exit
    fi
    exec warren serve "$@"
fi
exec "$@"
