"""What slows: alarms and credit."""
