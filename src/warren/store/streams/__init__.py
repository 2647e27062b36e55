"""Streams on disk: append-only logs of chunks, read repeatedly and trimmed from the beginning."""
