"""Helpers of kernels are compiled without counting references where numba allows it, and as usual where it does not."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest

from plumdp import compiled as module


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


def refusing(reason):
    """Return numba's njit as a version of it that does not know the private option."""
    njit = module.njit

    def old_njit(**options):
        if "_nrt" in options:
            raise reason
        return njit(**options)

    return old_njit


def test_a_helper_counts_no_references(monkeypatch):
    njit = module.njit
    monkeypatch.setattr(module, "njit", lambda **options: njit(**options | {"cache": False}))  # cached code has no text
    helper = module.compiled_leaf(total)
    assert helper(np.arange(5.0)) == 10
    assert "NRT_incref" not in next(iter(helper.inspect_llvm().values()))


@pytest.mark.parametrize("reason", [KeyError("_nrt"), TypeError("unexpected keyword argument")])
def test_a_numba_without_the_option_compiles_helpers_as_all_other_functions(monkeypatch, reason):
    monkeypatch.setattr(module, "njit", refusing(reason))
    assert module.compiled_leaf(total)(np.arange(5.0)) == 10


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_person_at_a_terminal_is_told_once_that_kernels_are_compiled(monkeypatch, is_terminal):
    class Screen(io.StringIO):
        def isatty(self):
            return is_terminal

    screen, announcement = Screen(), module.Announcement()
    monkeypatch.setattr(sys, "stderr", screen)
    for _ in range(2):
        announcement.on_start(None)
        announcement.on_end(None)
    assert screen.getvalue() == (f"{module.COMPILING}\n" if is_terminal else "")


def test_it_is_told_when_nothing_is_in_the_cache(tmp_path):
    """A fresh process with an empty cache, whose standard error says that it is a terminal."""
    code = """
import sys
sys.stderr.isatty = lambda: True
import numpy as np
from plumdp.compiled import compiled
from plumdp.model import kernels
def total(values): return values.sum()
for _ in range(2): print(compiled(total)(np.arange(5.0)))
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    file = tmp_path / "total.py"
    file.write_text(code)
    runs = [
        subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == ["10.0\n10.0\n"] * 2
    assert [run.stderr for run in runs] == [f"{module.COMPILING}\n", ""]
