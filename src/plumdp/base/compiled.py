"""JIT policy: interpret kernels on small inputs, compile them with numba on large ones, and keep what was compiled.

A kernel runs as plain Python until its arguments are large or it has run for about as long as the other way takes: to
read what an earlier process has compiled and kept, for which numba itself has to be imported first, or to compile it.
So small work needs no numba. ``plumdp warmup`` compiles ahead.

Both ways give the same bits: kernels are written in sums, products, quotients, square roots and comparisons of floats,
which IEEE 754 defines.

Numba has no function for ``prefetch``, by which a kernel asks the processor for an element that it will read soon, so
it is told here how to write LLVM's instruction.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from time import perf_counter, thread_time
from types import FunctionType
from typing import Any

import numpy as np

from plumdp.base.edge import write_whole
from plumdp.base.progress import is_shown, tell_part

PATIENCE = 0.001  # seconds of plain Python for each instruction of a kernel, about what compiling takes; 0: at once
IMPORTING, READING = 0.8, 0.01  # seconds, about what importing numba takes, and reading one kernel that was kept
SMALL = 400_000  # elements of all arguments; with more of them a kernel is compiled at once
_KEPT = 2  # by how much fewer they are with which one that was kept is read at once
COMPILING = "compiling kernels, once; plumdp warmup does it ahead"
NO_STAGE = "compiling"  # the entry of ``seconds`` of a ``Clock`` for kernels compiled meanwhile, which is done once

_LOGGER = logging.getLogger("plumdp")
_LOGGER.addHandler(logging.NullHandler())  # silent unless the user wants to hear
_LOCK = threading.Lock()  # one thread makes a dispatcher, and others that call the kernel wait for it


class Kernel:
    """A function of arrays and numbers, as plain Python and compiled."""

    def __init__(self, function: Any, options: dict[str, Any], *, is_helper: bool, small: int) -> None:
        self.function, self.options = function, options
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.plain_seconds = self.compiling_seconds = 0.0
        self.types: tuple[Any, ...] | None = None  # of the arguments of its first call
        self.is_compiled = False
        self._is_helper, self._small = is_helper, small
        self.__doc__ = function.__doc__
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Run the function, compiled if that is at hand or pays, and otherwise as plain Python."""
        if not self.is_compiled:
            if self._is_helper or not self._is_worth_compiling(arguments):
                return self._run_plain(arguments)
            self.compile(_types_of(arguments))
        return self.dispatcher(*arguments)

    def _is_worth_compiling(self, arguments: tuple[Any, ...]) -> bool:
        amount = amount_of(arguments)
        if self.types is None:  # later calls of this process need not look at the disk
            is_short = self.plain_seconds < READING or ("numba" not in sys.modules and seconds_of_plain() < IMPORTING)
            if PATIENCE and is_short and amount * _KEPT <= self._small:
                return False
            self.types = _types_of(arguments)
            if self._is_kept(self.types):
                return True
        return amount > self._small or self.plain_seconds >= PATIENCE * self.n_instructions

    def _run_plain(self, arguments: tuple[Any, ...]) -> Any:
        start = thread_time()
        with np.errstate(all="ignore"):  # as compiled loops do
            result = self.plain(*arguments)
        self.plain_seconds += thread_time() - start
        return result

    def compile(self, types: tuple[Any, ...]) -> None:
        """Compile the kernel for arguments of these types, or read what an earlier process compiled."""
        if not self._is_kept(types):
            _say_once(COMPILING)
        with _LOCK:
            start, is_collecting = perf_counter(), gc.isenabled()
            gc.disable()  # millions of small objects and no garbage to speak of: this saves a sixth
            try:
                self.dispatcher.compile(types)
            finally:
                self.compiling_seconds += perf_counter() - start
                if is_collecting:
                    gc.enable()
        self.is_compiled = True

    def _is_kept(self, types: tuple[Any, ...]) -> bool:
        """Return whether an earlier process compiled the kernel for arguments of these types."""
        return any((folder / self._file(types)).is_file() for folder in cache_folders())

    @property
    def is_missing(self) -> bool:
        """Whether this process ran the kernel as plain Python because it was not compiled."""
        return self.types is not None and not self.is_compiled

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function as plain Python, which calls other kernels as plain Python."""
        return self._calling("plain")

    @cached_property
    def dispatcher(self) -> Any:
        """The function as numba compiles it, which calls other kernels compiled."""
        dispatcher = _jit(self._calling("dispatcher"), self.options)
        dispatcher._cache = _KernelCache(self)
        return dispatcher

    def _calling(self, form: str) -> FunctionType:
        used = self._used.items()
        names = {name: getattr(value, form) if isinstance(value, Kernel) else value for name, value in used}
        return FunctionType(self.function.__code__, {"__name__": self.function.__module__, **names})

    @property
    def _used(self) -> dict[str, Any]:
        """The objects of its module that the function names."""
        names = self.function.__globals__
        return {name: names[name] for name in self.function.__code__.co_names if name in names}

    @cached_property
    def _called(self) -> list[Kernel]:
        """The kernel and all kernels that it calls, directly or not, by name."""
        called, new = set[Kernel](), {self}
        while new:
            called |= new
            new = {each for kernel in new for each in kernel._used.values() if isinstance(each, Kernel)} - called
        return sorted(called, key=lambda kernel: kernel.name)

    @cached_property
    def n_instructions(self) -> int:
        """The length of the function and the kernels that it calls: compiling takes about a millisecond for each."""
        return sum(len(kernel.function.__code__.co_code) // 2 for kernel in self._called)

    @property
    def _recipe(self) -> tuple[Any, ...]:
        """The options, code and numbers that numba makes machine code from; a test shows that there is nothing else."""
        code, used = self.function.__code__, self._used.items()
        numbers = {name: (type(value), value) for name, value in used if isinstance(value, int | float | np.number)}
        return self.name, self.options, code.co_code, code.co_consts, code.co_names, code.co_varnames, numbers

    @cached_property
    def _digest(self) -> str:
        """A hash of the recipes of the kernel and of all that it calls, numba, and the processor.

        Numba's own cache looks at the file of a function alone. It would go on using a helper of another file, or a
        constant that bounds are rounded with, after they have changed.
        """
        return hashlib.sha256(repr((_machine(), [kernel._recipe for kernel in self._called])).encode()).hexdigest()

    def _file(self, types: tuple[Any, ...]) -> str:
        digest = hashlib.sha256(f"{self._digest} {_spelled(types)}".encode()).hexdigest()
        return f"{self.name}-{digest[:32]}.kernel"


KERNELS: list[Kernel] = []
"""All kernels of the modules imported so far."""


def compiled(
    function: Callable[..., Any], *, is_helper: bool = False, small: int = SMALL, **more: Any
) -> Callable[..., Any]:
    """Return the function as a kernel, which numba compiles once there is enough to do.

    ``small`` is how many elements its arguments may have before it is compiled at once: few if it takes long for each.
    Called from Python, a helper of kernels is always plain Python.
    """
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **more}
    return Kernel(function, options, is_helper=is_helper, small=small)


def compiled_leaf(function: Callable[..., Any], *, is_helper: bool = True, small: int = SMALL) -> Callable[..., Any]:
    """Return a kernel that allocates nothing, or such a helper, compiled without counting references to its arrays.

    Counting costs several times as much as the work of a row.
    """
    return compiled(function, is_helper=is_helper, small=small, _nrt=False, no_cpython_wrapper=is_helper)


def compile_at_once() -> None:
    """Let this process compile each kernel when it is called first, however little there is to do."""
    global PATIENCE
    PATIENCE = 0.0


def seconds_of_plain() -> float:
    """Return the seconds that this process has spent in kernels as plain Python."""
    return sum(kernel.plain_seconds for kernel in KERNELS)


def seconds_of_compiling() -> float:
    """Return the seconds that this process has spent on compiling kernels, or on reading compiled ones."""
    return sum(kernel.compiling_seconds for kernel in KERNELS)


def amount_of(arguments: tuple[Any, ...]) -> int:
    """Return a rough measure of work: elements of arrays, also of those in tuples, and integers as they are.

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


def _jit(function: FunctionType, options: dict[str, Any]) -> Any:
    """Return the function for numba to compile, without the option that is private to numba where it is unknown."""
    njit = _numba().njit
    try:
        return njit(**options)(function)
    except (KeyError, TypeError):
        return njit(**{name: value for name, value in options.items() if name != "_nrt"})(function)


class _KernelCache:
    """The cache of one kernel, with a file for each kind of arguments, which numba asks before it compiles."""

    cache_path = None  # which numba names in its statistics

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a function that was compiled before, or None if there is none or its file is damaged."""
        target_context.refresh()
        for folder in cache_folders():
            with suppress(Exception):
                content = pickle.loads((folder / self._kernel._file(sig)).read_bytes())
                return _format().rebuild(None, target_context, content)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a function in the first folder that can be written to, or say why none can."""
        for folder in cache_folders():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(folder / self._kernel._file(sig), pickle.dumps(_format().reduce(None, data)))
                return
            except Exception as error:
                reason = getattr(error.__context__ or error, "strerror", None) or f"{type(error).__name__}: {error}"
                failure = f"compiled kernels cannot be kept in {folder}: {reason}"
        _say_once(failure, logging.WARNING)


def cache_folders() -> list[Path]:
    """Return the folders for compiled kernels, best first: numba's own setting, or beside this module and at home."""
    if chosen := _numba().config.CACHE_DIR:
        return [Path(chosen, "plumdp")]
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    return [Path(__file__).parent / "__pycache__" / "kernels", Path(home, "plumdp")]


def folder_in_use() -> Path | None:
    """Return the folder that has compiled kernels, or None if there is none."""
    return next((folder for folder in cache_folders() if any(folder.glob("*.kernel"))), None)


@cache
def _machine() -> tuple[str, ...]:
    from llvmlite import binding

    processor = (binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    numba = _numba()
    chosen = (str(numba.config.CPU_NAME), str(numba.config.CPU_FEATURES))
    return (numba.__version__, np.__version__, sys.version, *processor, *chosen)


def _spelled(kind: Any) -> str:
    """Return a type, or a tuple of types, in words, with the names of fields: numba leaves them out."""
    parts = kind if isinstance(kind, tuple) else getattr(kind, "types", ())
    return f"{kind} {getattr(kind, 'fields', '')} {[_spelled(part) for part in parts]}"


@cache
def _say_once(text: str, level: int = logging.INFO) -> None:
    """Log a line; one that is not a warning is printed instead if there is a terminal and no line on it."""
    if level == logging.INFO and not is_shown() and sys.stderr is not None and sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
    else:
        _LOGGER.log(level, text)
        tell_part(text)


_FOR_READING, _IN_NEAREST_CACHE, _DATA = 0, 3, 1


def prefetch(array: Any, index: Any) -> None:
    """Ask for an element, by an unsigned index, before it is needed; in plain Python this does nothing.

    Where successors are far apart in memory, a loop would otherwise wait for each of them.
    """


def _typed(context: Any) -> Any:
    """Return the type that numba gives ``prefetch``: a function that returns nothing."""
    return lambda array, index: _numba().types.none


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the instruction."""
    from llvmlite import ir

    array = context.make_array(signature.args[0])(context, builder, value=arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], _numba().types.uint64)
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    instruction = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
    address = builder.bitcast(builder.gep(array.data, [index]), byte)
    builder.call(instruction, [address, number(_FOR_READING), number(_IN_NEAREST_CACHE), number(_DATA)])
    return context.get_dummy_value()


@cache
def _numba() -> Any:
    """Return numba, which takes about half a second to import, once it knows how to write ``prefetch``."""
    import numba
    from numba import extending

    untyped: Any = extending  # has no annotations
    untyped.type_callable(prefetch)(_typed)
    untyped.lower_builtin(prefetch, numba.types.Array, numba.types.Integer)(_write)
    return numba


def _types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types that numba gives to arguments."""
    return tuple(map(_numba().typeof, arguments))


def _format() -> Any:
    """Return the functions of numba that turn compiled functions into objects which can be pickled, and back."""
    from numba.core.caching import CompileResultCacheImpl

    return CompileResultCacheImpl


class Clock:
    """Seconds of the stages of a calculation; those of compiling kernels, if any, are an entry of their own."""

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self.laps = {} if laps is None else laps
        self._last, self._compiling = perf_counter(), seconds_of_compiling()

    def lap(self, stage: str) -> None:
        """Enter the seconds since the last stage, and say so to those who listen to the logger ``plumdp``."""
        now, compiling = perf_counter(), seconds_of_compiling()
        compiled = compiling - self._compiling
        self.laps[stage] = self.laps.get(stage, 0.0) + max(now - self._last - compiled, 0.0)
        if compiled > 0:
            self.laps[NO_STAGE] = self.laps.get(NO_STAGE, 0.0) + compiled
        self._last, self._compiling = now, compiling
        _LOGGER.debug("%s: %.3f s", stage, self.laps[stage])
