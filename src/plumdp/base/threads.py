"""The number of threads of the solver, and functions that make calls in parallel or one behind the other.

Linear algebra gets one thread (``one_blas_thread``), as its matrices are small.

Compiled kernels release Python's lock, so that threads of one process keep all cores busy, without a copy of the model.
Results never depend on the number of threads: work is divided by its size alone, and no thread reads what another one
writes at the same time.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Event
from typing import Any, TypeVar

from plumdp.base.errors import DataError, Option

VARIABLE = "PLUMDP_THREADS"
LARGE = 1_000_000  # transitions; below, a second thread saves some milliseconds at most

T = TypeVar("T")
_asked: ContextVar[int | None] = ContextVar("asked", default=None)
_stop: ContextVar[Event | None] = ContextVar("stop", default=None)


def n_threads() -> int:
    """Return the number of threads to use.

    It is that of ``thread_limit``, else that of the environment, else the number of cores that this process may use. A
    process that another Python process started, as in a pool, uses one thread, as its siblings use the other cores.
    """
    asked = _asked.get()
    if asked is not None:
        return asked
    text = os.environ.get(VARIABLE, "")
    if text:
        return _checked(text, f"{VARIABLE}={text!r}")
    return 1 if multiprocessing.parent_process() is not None else usable_cores()


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not on Windows and macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def thread_limit(threads: int | None) -> Iterator[None]:
    """Let everything in the context use this many threads; None: leave it as it is."""
    token = _asked.set(_asked.get() if threads is None else _checked(threads, Option("threads", threads)))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let the linear algebra of NumPy and SciPy use one thread in the context. It also decorates functions.

    Matrices have as many rows as there are parameters, some hundred at most. OpenBLAS divides the work on them between
    threads all the same, which wait for each other thousands of times: on a busy machine that takes ten times as long.
    """
    with _linear_algebra("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        yield


@cache
def _linear_algebra(has_scipy: bool) -> Any:
    """Return the controller of the threads of linear algebra, made once, as that takes milliseconds, with SciPy's."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _checked(number: object, said: str | Option) -> int:
    if isinstance(number, bool) or not str(number).isdecimal() or int(str(number)) < 1:
        raise DataError(said, ": give the number of threads, 1 or more")
    return int(str(number))


def run_parallel(calls: Sequence[Callable[[], T]], work: int) -> list[T]:
    """Return the results of calls, made in parallel if there is much work, each with its share of the threads.

    An interrupt from the keyboard reaches all of them, at their next ``check_interrupt``.
    """
    if work < LARGE or len(calls) < 2 or n_threads() < 2:
        return [call() for call in calls]
    threads = n_threads()
    share, stop = max(1, threads // len(calls)), _stop.get() or Event()
    with ThreadPoolExecutor(min(threads, len(calls))) as pool:
        futures = [pool.submit(copy_context().run, _with_share, call, share, stop) for call in calls]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
        return [future.result() for future in futures]


def _with_share(call: Callable[[], T], share: int, stop: Event) -> T:
    _stop.set(stop)
    with thread_limit(share):
        return call()


def check_interrupt() -> None:
    """Raise KeyboardInterrupt in a thread whose calls were interrupted.

    Python itself interrupts the main thread only.
    """
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


@contextmanager
def run_serially_behind(work: int) -> Iterator[Callable[[Callable[[], object]], object]]:
    """Yield a function that makes calls one after the other, on a second thread if there is much work.

    All of them are done when the context ends, or dropped if it ends by an exception.
    """
    if work < LARGE or n_threads() < 2:
        yield lambda call: call()
        return
    with ThreadPoolExecutor(1) as pool:
        futures: list[Future[object]] = []
        try:
            yield lambda call: futures.append(pool.submit(call))
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
