"""Checks the claim about a table of unknown rows: intervals of all rows, and bets on temporal differences."""

from __future__ import annotations

from collections.abc import Iterator

from flint import fmpq

from .claim import Claim, check_budget, check_guarantee
from .reading import Ball, Exact, Part, Rejected, require
from .report import Report
from .table_bracket import check_ends, end_by_bets, read_stages
from .table_chain import TableChain, read_counts, read_table_chain
from .table_deviation import MOST_NODES, read_deviation
from .table_rows import read_plan, read_row_bounds
from .table_values import check_lower, check_possible, check_upper, read_intervals

N_TABLE_PILOTS = 12  # that data which may have ended at will might have had; each has an equal part of the error
SIDES = {"lower": -1, "upper": 1}

PRESPECIFIED = "that the policy in policy.csv was chosen before the data, as bets are on it"


def check_table(claim: Claim, witness: Part, report: Report) -> Claim:
    """Return the claim that is proved by intervals and bets in a table of unknown rows."""
    _refuse_unknown(claim, witness)
    bets = witness["bets"] if witness["bets"].value is not None else None
    with report.layer("budget"):
        report.assumed += check_guarantee(claim, witness["data"], uses_order=bets is not None, is_fixed=False)
        check_budget(claim, witness, _spent(claim, witness, bets))
    with report.layer("counts"):
        counts = read_counts(witness)
        chain = read_table_chain(witness["chain"], counts)
    plan = None
    if bets is not None:
        report.trusted += [PRESPECIFIED] if claim.certificate["options"]["policy"].value == "given" else []
        with report.layer("bets"):
            plan = read_plan(_sized(bets, chain), chain)
            require(counts.n_stages > 0, "bets need moments, after which they are placed")
            stages = {name: read_stages(part, chain, counts) for name, part in _sides(bets)}
    with report.layer("set"):
        intervals = read_intervals(witness["intervals"], counts, chain)
        if "support" in witness:
            check_possible(witness["support"], intervals)
        rows = None if bets is None or plan is None else read_row_bounds(bets, chain, counts, plan)
    with report.layer("values"):
        lower = check_lower(witness["values"], chain, intervals)
        upper = check_upper(witness["values"], chain, intervals)
        near = None
        if bets is not None and plan is not None and rows is not None:
            near = read_deviation(bets, chain, plan, rows, lower, upper)
    with report.layer("bracket"):
        ends = _by_intervals(chain, lower, upper)
        if bets is not None and near is not None:
            for side, found in ends.items():
                found.append(near.values[chain.initial or 0] + SIDES[side] * near.distance[chain.initial or 0])
            for side, part in _sides(bets):
                ends[side].append(end_by_bets(part, stages[side], near, SIDES[side]))
        return check_ends(claim, chain, ends["lower"], ends["upper"])


def _refuse_unknown(claim: Claim, witness: Part) -> None:
    """Refuse what is known of parameters only."""
    unknown = {
        "comparisons of policies of a table": claim.comparison is not None,
        "answers about all policies of a table": claim.all_policies is not None,
        "tables with a model tolerance": "model_tolerance" in witness,
    }
    for what, is_so in unknown.items():
        if is_so:
            raise Rejected(f"verify does not know {what}", "files")


def _sized(bets: Part, chain: TableChain) -> Part:
    n = len(chain.nodes)
    require(0 < n <= MOST_NODES, f"verify knows bets on chains of tables with up to {MOST_NODES:,} open nodes")
    require(chain.initial is not None, f"{bets.place}: the value of the first node is known")
    return bets


def _sides(bets: Part) -> Iterator[tuple[str, Part]]:
    """Yield the sides that the witness has bets for."""
    for name in SIDES:
        if bets["sides"][name].value is not None:
            yield name, bets["sides"][name]


def _by_intervals(chain: TableChain, lower: list[Exact], upper: list[Exact | None]) -> dict[str, list[Ball | Exact]]:
    """Return what intervals say of the value of the first node, from below and from above."""
    if chain.initial is None:
        return {"lower": [chain.initial_value], "upper": [chain.initial_value]}
    return {"lower": [lower[chain.initial]], "upper": [end for end in (upper[chain.initial],) if end is not None]}


def _spent(claim: Claim, witness: Part, bets: Part | None) -> Iterator[tuple[str, int, Exact]]:
    """Yield the parts of the error that are spent, how many events each has, and the error of each event."""
    intervals = witness["intervals"]
    yield "intervals", intervals["number"].whole(), intervals["error"].number()
    if bets is None:
        return
    shares = [share.fraction() for share in bets["shares"]]
    require(
        sum(shares, start=fmpq(0)) <= 1 and all(share > 0 for share in shares), "policies share more than the error"
    )
    share = shares[bets["policy"].whole(len(shares))]
    n_asked = bets["questions"].whole()
    require(n_asked >= max(len(claim.certificate["options"]["objectives"]), 1), "more is asked than bets are shared by")
    number = n_asked * (N_TABLE_PILOTS if witness["data"]["order"].text() == "open" else 1)
    errors = bets["errors"]
    yield "value_bets", number, 2 * errors["side"].number() / share
    yield "row_bets", number, errors["rows"].number() / share
    yield "joint_bets", number, errors["ball"].number() / share
