"""The command line: `warren` and its commands."""
