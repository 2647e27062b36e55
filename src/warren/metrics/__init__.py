"""Counters of a node, sampled at fixed intervals into time series."""
