"""How the process deals with memory: what glibc's allocator gives back to the system, and when.

Elsewhere than on glibc nothing is done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

# The options' numbers in malloc.h, and the largest value that they take.
TRIM_THRESHOLD, MMAP_MAX, LARGEST = -1, -4, 2**31 - 1


def keep_working_memory() -> None:
    """Memory that was used once stays with the process, for what is computed next.

    Each call of a compiled program takes its working memory from the allocator, tens of megabytes for a batch of
    images, and frees it. As glibc comes, that goes back to the system every time and is given anew page by page, which
    takes a large part of an update's time.
    """
    if mallopt := _function("mallopt"):
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, LARGEST)


def give_memory_back() -> None:
    """Compiling leaves hundreds of megabytes with the allocator, which a run with a large buffer could use."""
    if malloc_trim := _function("malloc_trim"):
        malloc_trim(0)


def _function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None)
