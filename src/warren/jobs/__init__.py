"""Jobs: moves, redrives and undos that run in the background, a part in each turn of the event loop."""
