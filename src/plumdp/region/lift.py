"""draft"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from plumdp.model.expressions import ExpressionTable
from plumdp.model.graph import FloatArray
from plumdp.model.polynomial import Polynomial
from plumdp.model.space import ParameterSpace
from plumdp.region.conflict import Conflict, explain
from plumdp.region.half_spaces import affine_forms, half_spaces, in_variables
from plumdp.region.mccormick import Bounds, Lift
from plumdp.region.redundancy import Contradiction
from plumdp.region.shapes import Polytope, intersection

import time
ROUNDS = 3
CELLS = {1: 16, 2: 8, 3: 4}
PASSES = 1
LOG = False

def lifted_region(space, table, lower, upper):
    t=time.time()
    lift = Lift.of(table)
    whole = ParameterSpace(lift.names, lift.bounds(space.bounds), space.constraints)
    envelopes = lift.envelopes(whole.bounds)
    both = _with(table, envelopes)
    low = np.append(lower, np.zeros(len(envelopes)))
    high = np.append(upper, np.full(len(envelopes), np.inf))
    known = half_spaces(whole, in_variables(both, lift.names), low, high)
    region = intersection(lift.names, known.rows, known.offsets)
    if LOG: print("first", time.time()-t, len(lift.names), len(region.rows)); t=time.time()
    if isinstance(region, Contradiction):
        return explain(region, known, whole, both, low, high)
    for _ in range(ROUNDS):
        region = within(region, lift, exact_bounds(region))
        assert not isinstance(region, Contradiction)
        if LOG: print("round", time.time()-t, len(region.rows), region.upper-region.lower); t=time.time()
    k = CELLS.get(len(space.names), 0)
    if k:
        region = cells(region, lift, k, affine_forms(in_variables(table, lift.names))[1][:2000])
        if LOG: print("cells", time.time()-t, len(region.rows), len(region.table)); t=time.time()
    return region

def exact_bounds(region) -> Bounds:
    return tuple((Fraction(a), Fraction(b)) for a, b in zip(region.lower.tolist(), region.upper.tolist(), strict=True))

def within(region, lift, bounds):
    box = ParameterSpace(lift.names, bounds)
    table = in_variables(ExpressionTable.build(lift.envelopes(bounds), lift.parameters), lift.names)
    known = half_spaces(box, table, np.zeros(len(table)), np.full(len(table), np.inf))
    n = 2*len(lift.names)
    use = np.isfinite(known.offsets)
    return intersection(lift.names, np.vstack([known.rows[use], region.rows[n:]]), np.append(known.offsets[use], region.offsets[n:]))

NORMALS='xc'
def cells(region, lift, k, directions):
    d = len(lift.parameters)
    edges = [np.linspace(region.lower[j], region.upper[j], k+1) for j in range(d)]
    for j in range(d): edges[j][0]=region.lower[j]; edges[j][-1]=region.upper[j]
    old = exact_bounds(region)
    found = []
    for at in product(range(k), repeat=d):
        b = lift.bounds(tuple((Fraction(float(edges[j][i])), Fraction(float(edges[j][i+1]))) for j, i in enumerate(at)))
        b = tuple((max(x[0],y[0]), min(x[1],y[1])) for x,y in zip(b, old))
        if any(x>y for x,y in b): continue
        cell = within(region, lift, b)
        for _ in range(PASSES-1):
            if isinstance(cell, Contradiction): break
            cell = within(cell, lift, exact_bounds(cell))
        if not isinstance(cell, Contradiction): found.append(cell)
    n = len(lift.names)
    lo, hi = np.min([c.lower for c in found],axis=0), np.max([c.upper for c in found],axis=0)
    normals = [region.rows[2*n:]]
    if "x" in NORMALS: normals += [directions, -directions]
    if "c" in NORMALS: normals += [c.rows[2*n:] for c in found]
    normals = np.vstack(normals)
    normals = np.unique((normals/np.abs(normals).max(axis=1)[:,None]), axis=0)
    t=time.time()
    off = np.max([-c.minimise(-normals) for c in found],axis=0)
    if LOG: print(len(found), "cells", len(normals), "normals", time.time()-t)
    rows = np.vstack([-np.eye(n), np.eye(n), region.rows[2*n:], normals])
    offs = np.concatenate([-lo, hi, region.offsets[2*n:], off])
    return intersection(lift.names, rows, offs)

def _with(table, polynomials):
    more = ExpressionTable.build(polynomials, table.names)
    return ExpressionTable(
        table.names,
        table.polynomials + more.polynomials,
        np.vstack([table.monomials, more.monomials]),
        np.append(table.first_term, more.first_term[1:] + table.first_term[-1]),
        np.append(table.monomial, more.monomial + len(table.monomials)),
        np.append(table.coefficient, more.coefficient),
    )
