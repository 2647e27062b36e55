"""Rows that executors stage and a driver commits: received as Arrow, published exactly once."""
