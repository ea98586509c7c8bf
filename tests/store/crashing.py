"""A process that writes until it is killed. Arguments: the directory and the number of the first batch.

Each line of its output is a batch that was acknowledged.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from tests.store.opening import opened
from tests.strategies import Entry, put_request

BATCH = 4
AT_ONCE = 6


def batch(number: int) -> list[Entry]:
    """Batch `number`; every third replaces the one before it."""
    name = number - 1 if number % 3 == 2 else number
    return [Entry(id=f"b{name}-{each}", words=("tide", f"n{number}"), seeds=(number,)) for each in range(BATCH)]


def main() -> None:
    """Writes for ever, some batches at once, so that groups are larger than one."""
    with opened(Path(sys.argv[1])) as store:
        for first in itertools.count(int(sys.argv[2]), AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            requests = [put_request(batch(number), f"request-{number}") for number in numbers]
            futures = [store.write("p", request) for request in requests]
            for number, future in zip(numbers, futures, strict=True):
                future.result(30)
                print(number, flush=True)


if __name__ == "__main__":
    main()
