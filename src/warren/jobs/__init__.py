"""Jobs: moves, redrives and undos that run in the background, a piece in each turn of the event loop."""
