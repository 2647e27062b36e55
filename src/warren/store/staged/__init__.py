"""Staged rows: rows that will be published together, in files of their own until they are committed."""
