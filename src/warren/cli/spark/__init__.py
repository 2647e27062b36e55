"""`warren spark`: pipelines over queues and streams. Nothing here imports Spark before a command runs."""
