"""Streams on the disk: logs of chunks that are read again and again, and given up from their beginning."""
