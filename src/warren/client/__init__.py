"""A blocking AMQP client for the Spark connector, the load tool and other programs."""
