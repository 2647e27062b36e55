"""Blocking clients: AMQP connections and HTTP requests of a program that waits for each answer."""
