"""Every bound of groups that replicate a log, each with its reason. Sizes are in bytes."""

# Replicas that one change of a configuration names: a group has at most a few voters and learners, and a
# change that replaces all of them names each twice.
CHANGE_MEMBERS_MAX = 64
