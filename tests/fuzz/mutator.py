"""Random mutations of the seed inputs, reproducible by a seed number."""

from collections.abc import Iterator
from random import Random

SIZE_MAX = 4096
SIGNIFICANT_BYTES = [0, 1, 2, 4, 8, 0x10, 0x3C, 0x41, 0x46, 0x53, 0x7F, 0x80, 0xCE, 0xFE, 0xFF]


def inputs(seeds: list[bytes], number: int) -> Iterator[bytes]:
    """The seeds, and then mutations of them, without end."""
    random = Random(number)
    pool = list(seeds)
    yield from pool
    while True:
        data = bytearray(random.choice(pool))
        for _ in range(random.choice((1, 1, 2, 3, 8))):
            random.choice(CHANGES)(random, data, pool)
        changed = bytes(data[:SIZE_MAX])
        # A few are mutated further, so that damage accumulates.
        if random.random() < 0.02:
            if len(pool) > len(seeds) + 64:
                pool.pop(random.randrange(len(seeds), len(pool)))
            pool.append(changed)
        yield changed


def replace(random: Random, data: bytearray, pool: list[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice(
            (random.randrange(256), random.choice(SIGNIFICANT_BYTES))
        )


def flip(random: Random, data: bytearray, pool: list[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def insert(random: Random, data: bytearray, pool: list[bytes]) -> None:
    at = random.randint(0, len(data))
    data[at:at] = random.randbytes(random.randint(1, 8))


def remove(random: Random, data: bytearray, pool: list[bytes]) -> None:
    at = random.randint(0, len(data))
    del data[at : at + random.randint(1, 16)]


def repeat(random: Random, data: bytearray, pool: list[bytes]) -> None:
    at = random.randint(0, len(data))
    data[at:at] = data[at : at + random.randint(1, 32)] * random.choice((1, 1, 2, 16))


def cross(random: Random, data: bytearray, pool: list[bytes]) -> None:
    other = random.choice(pool)
    data[random.randint(0, len(data)) :] = other[random.randint(0, len(other)) :]


CHANGES = [replace, replace, flip, insert, remove, repeat, cross]
