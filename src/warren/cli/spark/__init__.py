"""The commands `warren spark`: pipelines over queues and streams. Spark is imported when a command runs."""
