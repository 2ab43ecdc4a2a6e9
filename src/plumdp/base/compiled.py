"""Kernels: loops that run as plain Python while there is little to do, and compiled by numba once there is more.

Compiling a kernel takes about as long as running it in plain Python on some hundred thousand elements. A kernel is
therefore run as it is written until that has taken as long as compiling would, counting earlier processes
(``tally.py``), and compiled then: all in all it takes at most about twice the time of the better choice. With large
arguments it is compiled at once, and what an earlier process has compiled is read from numba's cache and used. Both
ways give the same bits: kernels are written in sums, products, quotients, square roots and comparisons of floats, which
IEEE 754 defines.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from time import perf_counter, thread_time
from types import FunctionType
from typing import Any, cast

import numpy as np
from numba import config, njit
from numba.core import caching, event
from numba.misc.appdirs import AppDirs

from plumdp.base.tally import Tally

PATIENCE = 0.001  # seconds of plain Python for each instruction of a kernel, about what compiling takes; 0: at once
SMALL = 400_000  # elements of all arguments; with more of them a kernel is compiled at once
COMPILING = "compiling kernels, once: up to 10 s"
COMPILING_ALL = "compiling kernels, once: about half a minute"

_LOGGER = logging.getLogger("plumdp")


class Kernel:
    """A function of arrays and numbers, as plain Python and compiled; kernels that call it call the compiled one."""

    def __init__(self, function: Any, dispatcher: Any, *, is_helper: bool, small: int) -> None:
        self.function = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.dispatcher = dispatcher
        self._numba_type_ = dispatcher._numba_type_  # what numba takes it for where another kernel calls it
        self.py_func, self.targetoptions = function, dispatcher.targetoptions  # what numba asks before it inlines
        self._is_helper, self._small = is_helper, small
        self._is_compiled = self._is_missing = False
        self._pace = 0.0  # seconds of plain Python for each element, in the slowest call so far
        self.__doc__ = function.__doc__
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function returns: compiled if that is at hand or pays, otherwise as plain Python."""
        if self._is_compiled:
            return self.dispatcher(*arguments)
        if self._is_helper or not self._is_worth_compiling(arguments):
            return self._run_plain(arguments)
        _COMPILER.listen()
        result = self.dispatcher(*arguments)
        self._is_compiled = True
        _TALLY.forget(self.name)
        return result

    def _is_worth_compiling(self, arguments: tuple[Any, ...]) -> bool:
        work = amount_of(arguments)
        is_due = work > self._small or _TALLY.seconds(self.name) + self._pace * work >= PATIENCE * self.n_instructions
        return is_due or self._is_kept(arguments)

    def _is_kept(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether numba compiled it in an earlier process, for arguments like these: asked once."""
        if not self._is_missing:
            self._is_missing = not _is_in_cache(self.dispatcher, arguments)
        return not self._is_missing

    def _run_plain(self, arguments: tuple[Any, ...]) -> Any:
        start = thread_time()
        with np.errstate(all="ignore"):  # as compiled loops do
            result = self.plain(*arguments)
        if not self._is_helper:
            seconds = thread_time() - start
            self._pace = max(self._pace, seconds / (amount_of(arguments) + 1000))  # short calls say little
            _TALLY.add(self.name, seconds)
        return result

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function as plain Python, with the plain functions of the kernels that it calls."""
        plain = {name: value.plain if isinstance(value, Kernel) else value for name, value in self._used.items()}
        return FunctionType(self.function.__code__, plain)

    @property
    def _used(self) -> dict[str, Any]:
        """What the function uses of its module, by name."""
        names = self.function.__globals__
        return {name: names[name] for name in self.function.__code__.co_names if name in names}

    @cached_property
    def n_instructions(self) -> int:
        """The length of the function, with the kernels that it calls: compiling takes about a millisecond for each."""
        called, new = set[Kernel](), {self}
        while new:
            called |= new
            new = {each for kernel in new for each in kernel._used.values() if isinstance(each, Kernel)} - called
        return sum(len(kernel.function.__code__.co_code) // 2 for kernel in called)

    @property
    def folder(self) -> str | None:
        """Where numba keeps it once it is compiled; None if nowhere."""
        return None if _KeptCache.has_failed else cast("str | None", self.dispatcher.stats.cache_path)


KERNELS: list[Kernel] = []
"""All kernels of the modules imported so far."""


def compile_at_once() -> None:
    """Let this process compile each kernel when it is called first, however little there is to do."""
    global PATIENCE
    PATIENCE = 0.0


def signatures() -> list[str]:
    """Return what this process compiled or read: each kernel once for each kind of arguments, helpers included."""
    return [f"{kernel.name}{signature}" for kernel in KERNELS for signature in kernel.dispatcher.signatures]


def compiled_leaf(
    function: Callable[..., Any], *, is_helper: bool = True, small: int = SMALL, **more: Any
) -> Callable[..., Any]:
    """Return a kernel that allocates nothing, or such a helper, compiled without counting references to its arrays.

    Counting costs several times as much as the work of a row. The option is private to numba: without it, functions
    are compiled as all others are, with the same results.
    """
    options: Any = {"is_helper": is_helper, "small": small, **more}
    try:
        return compiled(function, _nrt=False, no_cpython_wrapper=is_helper, **options)
    except (KeyError, TypeError):
        return compiled(function, **options)


def compiled(
    function: Callable[..., Any], *, is_helper: bool = False, small: int = SMALL, **more: Any
) -> Callable[..., Any]:
    """Return the function as a kernel, which numba compiles once there is enough to do.

    ``small`` is how many elements its arguments may have before it is compiled at once: few if it takes long for each.
    Called from Python, a helper of kernels is always plain Python.
    """
    options: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **more}
    dispatcher = njit(**options)(function)
    dispatcher._cache = _cache_of(function)
    return Kernel(function, dispatcher, is_helper=is_helper, small=small)


def _cache_of(function: Any) -> Any:
    """Return where numba looks for a compiled function, and keeps it."""
    try:
        return cast(Any, _InstalledCache if _is_installed_for_reading(function) else _KeptCache)(function)
    except RuntimeError:  # no folder that can be written to, not even a user's: compile anew in each process
        return cast(Any, caching.NullCache)()


def _is_in_cache(dispatcher: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether numba's index has a function for these types, from the same source and for this processor."""
    try:
        cache = dispatcher._cache
        index = cache._cache_file._load_index()
        if not index:
            return False
        types = tuple(dispatcher.typeof_pyval(each) for each in arguments)
        return cache._index_key(types, dispatcher.targetctx.codegen()) in index
    except Exception:  # there is no cache, it cannot be read, or it looks different in this version of numba
        return False


def _is_installed_for_reading(function: Any) -> bool:
    """Return whether a function was compiled where the package is installed, by someone who may write there."""
    file = Path(function.__code__.co_filename)
    folder = file.parent / "__pycache__"
    if _given_folder() or os.access(folder, os.W_OK):
        return False
    return any(folder.glob(f"{file.stem}.{function.__qualname__}-*.nbi"))


class _KeptCache(caching.FunctionCache):
    """What was compiled in earlier processes; what cannot be read is compiled anew, and kept if that is possible."""

    has_failed = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a function that was compiled before; None if there is none, or its file is damaged."""
        try:
            return cast(Any, super()).load_overload(sig, target_context)
        except Exception:
            with suppress(Exception):
                cast(Any, self).flush()  # or else nothing could be kept beside the damaged file
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a function; if that fails, say so once in a process, and go on without."""
        try:
            cast(Any, super()).save_overload(sig, data)
        except Exception as error:
            if not _KeptCache.has_failed:
                reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
                _LOGGER.warning("compiled kernels cannot be kept in %s: %s", self.cache_path, reason)
            _KeptCache.has_failed = True


class _InstalledLocator(caching.InTreeCacheLocator):
    """The folder beside a module, whether or not it can be written to: numba asks for one that can."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        return cls(py_func, py_file)


class _InstalledCache(_KeptCache):
    """What was compiled where the package is installed, as in the image of a container; nothing is added to it."""

    class _impl_class(caching.CompileResultCacheImpl):
        _locator_classes = [_InstalledLocator]  # noqa: RUF012

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep nothing."""


def amount_of(arguments: tuple[Any, ...]) -> int:
    """Return how much there is to do, roughly: elements of arrays, also of those in tuples, and integers as they are.

    Integers are mostly sizes, or numbers of runs or sweeps; to take one for more than it is only compiles too early.
    """
    total = 0
    for each in arguments:
        if isinstance(each, np.ndarray):
            total += each.size
        elif isinstance(each, tuple):
            total += amount_of(each)
        elif isinstance(each, int):
            total += abs(each)
    return total


class _Compiler(event.Listener):
    """Listens to numba: says when it first compiles, and how long that, or reading what it compiled before, takes.

    Compiling makes millions of small objects and no garbage to speak of: without collecting it is faster by a sixth.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread = threading.local()
        self._is_listening = self._has_spoken = False

    def listen(self) -> None:
        """Begin to listen, unless it does already."""
        if not self._is_listening:
            self._is_listening = True
            for kind in ("numba:compiler_lock", "numba:compile"):
                cast(Any, event.register)(kind, self)

    def on_start(self, event: Any) -> None:
        """Note when the outermost of nested compilations began."""
        depth = getattr(self._thread, "depth", 0)
        self._thread.depth = depth + 1
        if depth == 0:
            self._thread.start, self._thread.is_collecting = perf_counter(), gc.isenabled()
            gc.disable()
        if event.kind == "numba:compile" and not self._has_spoken:
            self._has_spoken = True
            _say(COMPILING if PATIENCE > 0 else COMPILING_ALL)

    def on_end(self, event: Any) -> None:
        """Add the seconds of the outermost of nested compilations."""
        self._thread.depth -= 1
        if self._thread.depth == 0:
            self.seconds += perf_counter() - self._thread.start
            if self._thread.is_collecting:
                gc.enable()


_COMPILER = _Compiler()


def seconds_of_compiling() -> float:
    """Return how many seconds this process has spent on compiling kernels, or on reading compiled ones."""
    return _COMPILER.seconds


def _say(text: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
    else:
        _LOGGER.info(text)


def _given_folder() -> str:
    """Return where numba is told to keep what it compiles; empty if it is not."""
    return str(getattr(config, "CACHE_DIR", ""))


def cache_folders() -> Iterator[Path]:
    """Yield where numba may keep what it compiles, best first: as it is told, beside this module, or the user's."""
    if _given_folder():
        yield Path(_given_folder())
        return
    beside = Path(__file__).parent / "__pycache__"
    if os.access(beside, os.W_OK):
        yield beside
    yield Path(cast(Any, AppDirs)(appname="numba", appauthor=False).user_cache_dir)


_TALLY = Tally(cache_folders)
