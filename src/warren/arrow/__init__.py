"""Messages as Arrow record batches, built column by column."""
