"""What slows publishers down: alarms, and the disk."""
