"""In from clients: listeners, TLS, bytes in and bytes out."""
