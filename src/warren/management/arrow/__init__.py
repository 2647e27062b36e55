"""Messages as rows of Arrow: many at once, column by column, for who computes with them."""
