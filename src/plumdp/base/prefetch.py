"""``prefetch``: a kernel asks the processor for an element that it will read soon.

Numba has no function for this, so it is told here how to write LLVM's instruction.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending, types

_numba: Any = extending  # which has no annotations
_FOR_READING, _IN_NEAREST_CACHE, _DATA = 0, 3, 1


def prefetch(array: Any, index: Any) -> None:
    """Ask for an element, by an unsigned index, before it is needed; in plain Python this does nothing.

    Where successors are far apart in memory, a loop would otherwise wait for each of them.
    """


def _typed(context: Any) -> Any:
    """Return the type that numba gives ``prefetch``: a function that returns nothing."""
    return lambda array, index: types.none


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the instruction."""
    array = context.make_array(signature.args[0])(context, builder, value=arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.uint64)
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    instruction = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
    address = builder.bitcast(builder.gep(array.data, [index]), byte)
    builder.call(instruction, [address, number(_FOR_READING), number(_IN_NEAREST_CACHE), number(_DATA)])
    return context.get_dummy_value()


_numba.type_callable(prefetch)(_typed)
_numba.lower_builtin(prefetch, types.Array, types.Integer)(_write)
