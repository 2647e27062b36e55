"""Flow control of publishers: resource alarms, and credit of the disk."""
