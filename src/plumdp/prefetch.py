"""``prefetch``: a kernel asks the processor for an element that it will read soon.

Numba has no function for this, so it is told here how to write LLVM's instruction.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import imputils
from numba.core.typing import templates
from numba.np import arrayobj

_numba: Any = imputils, templates, arrayobj  # which have no annotations
_imputils, _templates, _arrays = _numba
_FOR_READING, _IN_NEAREST_CACHE, _DATA = 0, 3, 1


def prefetch(array: Any, index: Any) -> None:
    """Ask for an element, by an unsigned index, before it is needed; in plain Python this does nothing.

    Where successors are far apart in memory, a loop would otherwise wait for each of them.
    """


class _Typing(templates.AbstractTemplate):
    """What numba takes ``prefetch`` for."""

    def generic(self, args: Any, kws: Any) -> Any:
        """Return its signature: it returns nothing."""
        return _templates.signature(types.none, *args)


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the instruction."""
    array = _arrays.make_array(signature.args[0])(context, builder, value=arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.uint64)
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    instruction = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
    address = builder.bitcast(builder.gep(array.data, [index]), byte)
    builder.call(instruction, [address, number(_FOR_READING), number(_IN_NEAREST_CACHE), number(_DATA)])
    return context.get_dummy_value()


_templates.infer_global(prefetch)(_Typing)
_imputils.lower_builtin(prefetch, types.Array, types.Integer)(_write)
