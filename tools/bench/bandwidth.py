#!/usr/bin/env python3
"""Prints how fast this machine reads memory, in GB/s: the best of several sweeps over SIZE megabytes by N threads.

python3 tools/bench/bandwidth.py 1024 2
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SWEEPS = 8


def gigabytes_per_second(megabytes: int, threads: int) -> float:
    parts = np.array_split(np.ones(megabytes * 2**20 // 8, dtype=np.uint64), threads)
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(SWEEPS):
            start = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, parts))  # numpy lets go of its lock, and takes 64 bytes at a time
            best = min(best, time.perf_counter() - start)
    return megabytes * 2**20 / best / 1e9


if __name__ == "__main__":
    print(f"{gigabytes_per_second(int(sys.argv[1]), int(sys.argv[2])):.2f}")
