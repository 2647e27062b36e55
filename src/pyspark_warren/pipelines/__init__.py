"""What people do with messages in Spark, as functions: commands and notebooks call them."""
