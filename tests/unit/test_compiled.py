"""Kernels: plain Python while there is little to do, then compiled and kept; helpers count no references."""

import gc
import importlib
import itertools
import logging
import math
import os
import pkgutil
import subprocess
import sys
import warnings
from types import CodeType
from typing import NamedTuple

import numba
import numpy as np
import pytest
from both_ways import bits, copied, kernels_run_both_ways, kernels_run_plain

import plumdp
import plumdp as pl
from plumdp.base import compiled
from plumdp.base import compiled as module
from plumdp.base.compiled import Clock, prefetch

FACTOR = 2.0


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


def doubled_total(values):
    return FACTOR * helping_total(values)


def item(values, index):
    return values[index]


helping_total = module.compiled_leaf(total)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Let kernels be kept in an empty folder."""
    monkeypatch.setattr(module, "cache_folders", lambda: [tmp_path])
    return tmp_path


@pytest.fixture
def patient(folder, monkeypatch):
    """Let kernels run as plain Python for ever, unless they have much to do or were kept."""
    monkeypatch.setattr(module, "PATIENCE", math.inf)
    monkeypatch.setattr(module, "READING", 0.0)


def refusing(reason):
    """Return numba's njit as a version of it that does not know the private option."""
    njit = numba.njit

    def old_njit(**options):
        if "_nrt" in options:
            raise reason
        return njit(**options)

    return old_njit


def test_numba_has_the_two_private_names_that_kernels_are_made_with(folder):
    """Where this fails, compiled.py has to learn how the new version of numba is told these things."""
    helper, kernel = module.compiled_leaf(total), module.compiled(total)
    types = (numba.typeof(np.arange(5.0)),)
    helper.dispatcher.compile(types)
    code = next(iter(helper.dispatcher.inspect_llvm().values()))
    assert "NRT_incref" not in code, "numba's option _nrt=False no longer stops it from counting references"
    kernel.compile(types)
    assert len([*folder.glob("*.total-*.kernel")]) == 2, "numba no longer hands what it compiled to dispatcher._cache"
    again = module.compiled(total)
    again.compile(types)
    hits = sum(again.dispatcher.stats.cache_hits.values())
    assert hits == 1, "numba no longer asks dispatcher._cache before it compiles"
    assert again(np.arange(5.0)) == 10


@pytest.mark.parametrize("reason", [KeyError("_nrt"), TypeError("unexpected keyword argument")])
def test_a_numba_without_the_option_compiles_helpers_as_all_other_functions(folder, monkeypatch, reason):
    monkeypatch.setattr(numba, "njit", refusing(reason))
    assert module.compiled_leaf(total).dispatcher.py_func(np.arange(5.0)) == 10


def test_a_kernel_is_plain_python_until_it_has_taken_as_long_as_compiling(folder, monkeypatch):
    kernel = module.compiled(total)
    monkeypatch.setattr(module, "PATIENCE", 1.0)
    monkeypatch.setattr(module, "READING", 0.0)
    assert kernel(np.arange(5.0)) == 10
    assert kernel.is_missing
    kernel.plain_seconds = kernel.n_instructions - 0.5
    assert kernel(np.arange(5.0)) == 10
    assert kernel.is_missing
    kernel.plain_seconds = kernel.n_instructions
    assert kernel(np.arange(5.0)) == 10
    assert kernel.is_compiled
    assert not kernel.is_missing


def test_a_kernel_with_much_to_do_is_compiled_at_once(patient):
    kernel = module.compiled(total, small=4)
    kernel(np.arange(4.0))
    assert not kernel.is_compiled
    kernel(np.arange(5.0))
    assert kernel.is_compiled


def test_a_kernel_that_was_kept_is_read_once_it_has_taken_as_long_as_that(patient, monkeypatch):
    module.compiled(total, small=0)(np.arange(5.0))
    kernel, other = module.compiled(total), module.compiled(total, small=8)
    monkeypatch.setattr(module, "READING", 1.0)
    for kernel.plain_seconds, is_read in ((0.5, False), (1.0, True)):
        assert kernel(np.arange(5.0)) == 10
        assert kernel.is_compiled == is_read
    assert sum(kernel.dispatcher.stats.cache_misses.values()) == 0
    for n, is_read in ((4, False), (5, True)):  # or if there is much to do
        other(np.arange(float(n)))
        assert other.is_compiled == is_read


SMALL_WORK = """
import sys
import plumdp as pl
from plumdp.base import compiled
study = pl.case_study("betting:5")
counts = pl.simulate(study.model, study.true_point, 30, rng=1, max_steps=6)
certificate = pl.certify(study.model, counts, study.objective)
print("numba" in sys.modules, compiled.seconds_of_plain() > 0, certificate.lower.hex(), certificate.upper.hex())
"""


@pytest.mark.slow
def test_small_work_needs_no_numba_and_has_the_bounds_of_compiled_kernels():
    done = subprocess.run([sys.executable, "-c", SMALL_WORK], capture_output=True, text=True, check=True)
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 30, rng=1, max_steps=6)
    found = pl.certify(study.model, counts, study.objective)
    assert done.stdout.split() == ["False", "True", found.lower.hex(), found.upper.hex()]


def test_a_kernel_that_was_kept_for_other_arguments_is_plain_python(patient):
    module.compiled(total, small=0)(np.arange(5.0))
    kernel = module.compiled(total)
    assert kernel(np.arange(5)) == 10
    assert kernel.is_missing


def test_kernels_are_made_from_their_code_from_numbers_and_from_other_kernels_alone():
    """The names of kept kernels depend on these, so that none is used after something else has changed."""
    for found in pkgutil.walk_packages(plumdp.__path__, "plumdp."):
        if found.name.endswith("kernels") or ".nature." in found.name:
            importlib.import_module(found.name)
    kernels = [kernel for kernel in module.KERNELS if kernel.name.startswith("plumdp.")]
    assert len(kernels) > 100
    for kernel in kernels:
        function = kernel.function
        assert (function.__defaults__, function.__kwdefaults__, function.__closure__) == (None, None, None)
        assert not any(isinstance(each, CodeType) for each in function.__code__.co_consts), kernel.name
        others = [
            each for each in kernel._used.values() if not isinstance(each, module.Kernel | int | float | np.number)
        ]
        assert {*others} <= {np, prefetch}, kernel.name


class Pair(NamedTuple):
    low: float
    high: float


def test_what_was_kept_is_not_used_after_a_helper_a_constant_or_a_field_has_changed(patient, monkeypatch):
    """Numba's own cache looks at the file of the kernel alone, and would give bounds of old constants."""

    def kept_name(*arguments):
        kernel = module.compiled(doubled_total)
        return kernel._file(tuple(numba.typeof(each) for each in arguments))

    values, names = doubled_total.__globals__, set()
    names.add(kept_name(np.arange(5.0), Pair(0.0, 1.0)))
    assert names == {kept_name(np.arange(6.0), Pair(2.0, 1.0))}
    names.add(kept_name(np.arange(5.0), NamedTuple("Pair", [("high", float), ("low", float)])(0.0, 1.0)))
    monkeypatch.setitem(values, "FACTOR", 2.5)
    names.add(kept_name(np.arange(5.0), Pair(0.0, 1.0)))
    monkeypatch.setitem(values, "helping_total", module.compiled_leaf(item))
    names.add(kept_name(np.arange(5.0), Pair(0.0, 1.0)))
    monkeypatch.setitem(values, "helping_total", module.compiled(item))
    names.add(kept_name(np.arange(5.0), Pair(0.0, 1.0)))
    assert len(names) == 5


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((np.zeros((2, 3)), 1.5, np.zeros(0)), 6),
        (((np.zeros(4), (np.zeros(1), True)), -3), 9),
        ((), 0),
    ],
)
def test_elements_and_integers_count_as_work_also_in_tuples(arguments, expected):
    assert module.amount_of(arguments) == expected


def test_plain_kernels_call_plain_kernels_and_compiled_ones_compiled_ones(patient, monkeypatch):
    helper, kernel = module.compiled_leaf(total), module.compiled(doubled_total)
    monkeypatch.setitem(doubled_total.__globals__, "helping_total", helper)
    assert kernel.n_instructions > helper.n_instructions
    assert kernel(np.arange(5.0)) == 20
    assert not helper.dispatcher.signatures
    module.compile_at_once()
    assert kernel(np.arange(5.0)) == 20
    assert helper.dispatcher.signatures


def test_what_python_raises_in_a_plain_kernel_reaches_the_caller(patient):
    kernel = module.compiled(item)
    with pytest.raises(IndexError, match="out of bounds"):
        kernel(np.arange(3.0), 5)
    assert kernel(np.arange(3.0), 2) == 2.0


def test_a_kernel_that_numba_cannot_compile_says_so_and_is_not_taken_for_compiled(folder, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    kernel = module.compiled(item)
    for _ in range(2):
        with pytest.raises(Exception, match="Cannot determine Numba type"):
            kernel({"a": 1}, np.arange(3))
    assert gc.isenabled()


def test_seconds_of_compiling_are_not_those_of_a_stage(folder, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    before = module.seconds_of_compiling()
    clock = Clock()
    module.compiled(total)(np.arange(5.0))
    clock.lap("stage")
    clock.lap("another stage")
    clock.lap("stage")
    spent = module.seconds_of_compiling() - before
    assert list(clock.laps) == ["stage", "compiling", "another stage"]
    assert clock.laps["compiling"] == spent > 0.01
    assert clock.laps["stage"] < spent  # defining a function, and adding five numbers
    assert gc.isenabled()


def test_a_process_that_compiles_nothing_has_no_such_entry():
    clock = Clock({"before": 1.0})
    clock.lap("stage")
    assert list(clock.laps) == ["before", "stage"]


COMPILING = """
import logging, sys
logging.basicConfig(level=sys.argv[1], format="%(name)s: %(message)s")
import numpy as np
from plumdp.base import compiled
from plumdp.data import kernels
compiled.compile_at_once()
kernels.count(np.zeros((1, 1), dtype=np.int32), np.zeros(1, dtype=np.int64))
kernels.cumulate(np.array([0, 1], dtype=np.int32), np.ones(1), np.ones(1))
"""


def in_a_process(tmp_path, level, **more):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    return subprocess.run([sys.executable, "-c", COMPILING, level], env=environment, check=True, **more)


@pytest.mark.night
def test_compiling_says_so_once_on_a_terminal_and_never_again(tmp_path):
    pty = pytest.importorskip("pty")
    said = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        in_a_process(tmp_path, "WARNING", stderr=theirs)
        os.write(theirs, b"end\n")  # so that there is something to read
        with open(ours, encoding="utf-8", newline="") as terminal:
            said.append(list(iter(terminal.readline, "end\r\n")))
        os.close(theirs)
    assert said == [[f"{module.COMPILING}\r\n"], []]


@pytest.mark.night
def test_compiling_is_silent_in_a_pipe_and_known_to_the_logger(tmp_path):
    quiet = in_a_process(tmp_path / "one", "WARNING", capture_output=True, text=True)
    told = in_a_process(tmp_path / "two", "INFO", capture_output=True, text=True)
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert (told.stdout, told.stderr) == ("", f"plumdp: {module.COMPILING}\n")


@pytest.mark.night
def test_a_cache_that_cannot_be_written_costs_one_line_and_nothing_else(tmp_path):
    """No file of this process may have a single byte, as on a full disk."""
    resource = pytest.importorskip("resource")
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))}
    done = in_a_process(tmp_path, "WARNING", capture_output=True, text=True, **limit)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"plumdp: compiled kernels cannot be kept in {tmp_path}")
    assert line.endswith(": File too large")
    assert [file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size] == []


@pytest.mark.slow
def test_a_damaged_cache_is_compiled_anew(tmp_path):
    """Every file of the first process loses its content, as after a crash."""
    in_a_process(tmp_path, "WARNING")
    damaged = [*tmp_path.rglob("*.kernel")]
    for file in damaged:
        file.write_bytes(b"")
    done = in_a_process(tmp_path, "WARNING", capture_output=True, text=True)
    assert len(damaged) == 2
    assert done.stderr == ""
    assert all(file.stat().st_size for file in damaged)


def test_the_logger_has_no_handlers_that_print():
    assert all(isinstance(each, logging.NullHandler) for each in logging.getLogger("plumdp").handlers)


# Kernels give the same bits as plain Python and compiled, so that nothing depends on when they are compiled


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, 1e308, -1e308, math.inf, -math.inf]
CASES = [
    ("betting:4", {}),
    ("aircraft:5,4,1", {}),
    ("aircraft:5,4,1", {"confidence_set": "interval", "relaxation": "rectangular"}),
    ("aircraft:5,4,1", {"confidence_set": "ellipsoid"}),
    ("rover:3,3,2", {}),
    ("rover:3,3,2", {"confidence_set": "interval"}),
    ("parallel:1,0", {}),
    ("parallel:1,0", {"confidence_set": "ellipsoid", "relaxation": "rectangular"}),
    ("betting:4", {"confidence_set": "l1", "relaxation": "expression"}),
]


def certificate_of(name, options):
    """Return all that a certificate says, except for its seconds, with every bit of its bounds."""
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, 60, rng=1, max_steps=study.max_steps + 1)
    found = pl.certify(study.model, counts, study.objective, **options)
    content = {key: value for key, value in found.to_dict().items() if key not in ("seconds", "provenance")}
    return counts.counts.tolist(), found.lower.hex(), found.upper.hex(), found.policy.choice.tolist(), content


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES)
def test_certificates_of_plain_and_of_compiled_kernels_are_equal_to_the_last_bit(name, options):
    found = certificate_of(name, options)
    with kernels_run_plain(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert certificate_of(name, options) == found


@pytest.mark.slow
def test_every_call_of_a_kernel_writes_the_same_bits_both_ways():
    with kernels_run_both_ways() as compared:
        for name, options in CASES[:2] + CASES[3:5]:
            certificate_of(name, options)
    modules = {name.rpartition(".")[0].removeprefix("plumdp.") for name in compared}
    assert modules == {
        "data.kernels", "model.kernels", "region.kernels", "region.vertex_kernels", "region.ellipsoid_kernels",
        "solver.chain_kernels", "solver.graph_kernels", "solver.coupled.kernels", "solver.coupled.residual_kernels",
        "solver.nature.interval", "solver.nature.vertices", "solver.nature.ellipsoid",
    }  # fmt: skip
    assert sum(compared.values()) > 1000


def arithmetic(values, small, large, result):
    """Do with pairs of numbers, which may be special, all that kernels do with numbers."""
    for k in range(len(values)):
        x, y = values[k, 0], values[k, 1]
        result[k, 0], result[k, 1], result[k, 2], result[k, 3] = x + y, x - y, x * y, x / y
        result[k, 4], result[k, 5], result[k, 6] = min(x, y), max(x, y), abs(x)
        result[k, 7] = np.sqrt(abs(x)) if np.isinf(y) else np.sqrt(y)
        result[k, 8], result[k, 9] = 1.0 / y, 1.0 if x < y else 2.0 if x == y else 3.0
        result[k, 10] = max(x, 0.0) if y > 0.0 else min(x, 1.0)
        result[k, 11] = small[k % 4] + large[k % 4] + float((small[k % 4] + 7) // 2) + float(large[k % 4] % 3)


def both(function, *arguments):
    kernel, copies = compiled.compiled(function), copied(arguments, {})
    with np.errstate(all="ignore"):
        plain = kernel.plain(*copies)
    return bits((plain, copies)), bits((kernel.dispatcher(*arguments), arguments))


@pytest.mark.slow
def test_arithmetic_with_zeros_infinities_and_both_kinds_of_integers_is_the_same_both_ways():
    pairs = np.array([*itertools.product(SPECIAL, SPECIAL)])
    small, large = np.array([0, 1, -3, 2**30], dtype=np.int32), np.array([0, 1, -3, 2**40], dtype=np.int64)
    result = np.empty((len(pairs), 12))
    plain, by_numba = both(arithmetic, pairs, small, large, result)
    assert with_one_nan(plain) == with_one_nan(by_numba)


def with_one_nan(found):
    """Return arrays with one kind of NaN: the sign of one that 0 / 0 makes differs, and nothing looks at it."""
    _, (_, _, _, (_, shape, written)) = found
    result = np.frombuffer(written).reshape(shape)
    return np.where(np.isnan(result), 1.25, result).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_empty_arrays_and_both_kinds_of_integers_are_the_same_both_ways(n, kind):
    from plumdp.data import kernels as data
    from plumdp.model import kernels as model
    from plumdp.solver import graph_kernels as graph

    first, successor = np.arange(n + 1, dtype=kind), np.zeros(n, dtype=kind)
    calls = [
        (data.cumulate, (first, np.ones(n), np.empty(n))),
        (data.count, (np.zeros((n, n), dtype=np.int32), np.zeros(n, dtype=np.int64))),
        (model.repeated_successors, (first, successor, np.empty(n, dtype=np.int64))),
        (model.row_classes, (first, successor, np.full(4, -1, dtype=np.int32), *np.empty((2, n), dtype=np.int32))),
        (graph.predecessors, (first, first, successor, np.zeros(n + 1, dtype=kind), np.empty(n, dtype=kind))),
    ]
    with kernels_run_both_ways() as compared:
        for kernel, arguments in calls:
            kernel(*arguments)
    assert len(compared) == len(calls)
