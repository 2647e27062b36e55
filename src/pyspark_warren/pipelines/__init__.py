"""Pipelines over messages as functions of a Spark session; `warren spark` and notebooks call them."""
