"""Rows that wait to be published together: they are in files of their own, and in no queue yet."""
