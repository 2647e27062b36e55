"""The stream protocol's octets <-> values: frames, commands, what is published and delivered."""
