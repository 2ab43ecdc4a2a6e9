"""Kernels give the same bits as plain Python and compiled, so that nothing depends on when they are compiled."""

import itertools
import math
import warnings

import numpy as np
import pytest
from both_ways import bits, copied, kernels_run_both_ways, kernels_run_plain

import plumdp as pl
from plumdp.base import compiled

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
