"""The operating system behind ports: clock, disk, threads, supervision."""
