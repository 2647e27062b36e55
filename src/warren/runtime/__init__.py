"""The world behind ports: clock, chance, supervision."""
