"""Looks again at what the checker trusts of a table: the chain, by a model that is read anew, and all bets.

Policy, references and weights are made again, each from counts that end where the data begin that it is used on.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import WhyNot
from plumdp.data.counts import TransitionCounts
from plumdp.model.graph import Indices
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices, check_policy
from plumdp.model.question import Question
from plumdp.tables.bracket import BetMoments, Errors, make_stages, plan_of
from plumdp.tables.candidates import Outlook, candidates_of
from plumdp.tables.chain import OpenChain
from plumdp.tables.plan import make_reference
from plumdp.tables.table_set import TableSet, moments_of
from plumdp.tables.values import chain_of_policy
from plumdp.verifying.look import Look
from plumdp.verifying.second_look import check_same_model, compare_counted
from plumdp.verifying.table_witness import (
    TableRows,
    data_part,
    fixed_part,
    intervals_part,
    order_of_nodes,
    support_part,
    table_chain_part,
)
from plumdp_verify.reading import Part, Rejected, require
from plumdp_verify.table_chain import read_counts, read_table_chain

_CLOSE = 1e-6  # relative, of what a solver finds in floats


def check_table_model(look: Look) -> None:
    """Require that the chain is that of the model under the policy, and that no unknown row is left out."""
    question, rows = look.question(), TableRows.of(look.model)
    sizes = [len(seen[0]) for seen in look.witness["rows"]]
    require(sizes == list(map(len, rows.places)), "the model has other unknown rows")
    check_same_model(look)
    missing = [each for each in support_part(question.model, rows) if each not in look.witness.get("support", [])]
    require(not missing, "the mission rests on transitions that the witness does not prove to be possible")
    part, _ = table_chain_part(question, look.policy(question), rows)
    mine, theirs = look.witness["chain"], json.loads(json.dumps(part))
    require(mine.keys() == theirs.keys(), "the chain has other parts than that of the model")
    for name, part in theirs.items():
        require(mine[name] == part, f"{name} of the chain differ from those of the model")


def check_table_data(look: Look) -> None:
    """Require that counts, and what is known of their order, are those of the data."""
    moments = _moments(look.model, look.counts)[1] if look.witness["data"]["lengths"] else None  # those of bets
    compare_counted(look, data_part(look.model, look.counts, moments, TableRows.of(look.model)))


def check_table_settings(look: Look) -> None:
    """Require that errors of intervals and bets are those that model and options decide."""
    found, bets = look.learned.bounds.of_kind(TableSet)[0], look.witness["bets"]
    mine, own = look.witness["intervals"], intervals_part(look.learned, found, TableRows.of(look.model), set())
    errors = {"intervals": (mine["error"], own["error"]), "events": (mine["number"], own["number"])}
    if bets is not None:
        asked = found.about(look.question())
        require(len(bets["shares"]) == len(asked), "bets are placed on more or fewer policies")
        made = asked[bets["policy"]].errors
        own_errors = {"side": made.of_side, "rows": made.rows, "ball": made.ball}
        errors |= {f"bets: {name}": (bets["errors"][name], error) for name, error in own_errors.items()}
    for name, pair in errors.items():
        require(bool(np.allclose(*pair, rtol=1e-9, atol=0)), f"{name}: the error is divided in another way")


def check_table_bets(look: Look) -> None:
    """Require that the policy, references and weights are those that the data before them lead to."""
    model, counts, witness, question = look.model, look.counts, look.witness, look.question()
    table_policy = look.policy(question)
    bets, graph, rows = witness["bets"], question.model.graph, TableRows.of(model)
    policy, (pilot, moments) = as_choices(graph, check_policy(graph, table_policy)), _moments(model, counts)
    of_one = Errors(bets["errors"]["side"], bets["errors"]["rows"], bets["errors"]["ball"])
    _check_policy(look, question, policy, _outlook(pilot, moments, witness, of_one))
    bounded = chain_of_policy(question.model, policy, question.objective)
    if isinstance(bounded, WhyNot):
        raise Rejected(f"there are no bets on this policy: {bounded.reason}")
    part = Part(witness, "witness")
    numbers = read_table_chain(part["chain"], read_counts(part)).numbers
    named = table_chain_part(question, table_policy, rows)[1]
    keys = [key for key, number in zip(named, numbers, strict=True) if number is not None]
    order = order_of_nodes(bounded.table, keys)
    _check_bets(bets, bounded.table, moments, of_one, order)


def _moments(model: ParametricMDP, counts: TransitionCounts) -> tuple[npt.NDArray[Any], BetMoments]:
    """Return the counts of the pilot, and what had been seen when bets were placed."""
    first = None if counts.pilot is None else counts.pilot.first_bets
    if counts.pilot is None or first is None:
        raise Rejected("the data of the result have no pilot")
    moments = moments_of(model, counts, counts.pilot, first)
    if moments is None:
        raise Rejected("the data of the result end with the pilot")
    return counts.pilot.moments[first], moments


def _outlook(pilot: npt.NDArray[Any], moments: BetMoments, witness: dict[str, Any], of_one: Errors) -> Outlook:
    """Return the knowledge from which the policy was chosen: the pilot, and the errors of all statements about it."""
    bets = witness["bets"]
    share = Part(bets, "bets")["shares"][bets["policy"]].fraction()
    all_of_it = int(share.q) / int(share.p)
    errors = Errors(of_one.of_side * all_of_it, of_one.rows * all_of_it, of_one.ball * all_of_it)
    of_intervals = witness["intervals"]["error"] * witness["intervals"]["number"]
    return Outlook(pilot, moments.counts[0], moments.lengths[0], moments.planned, errors, of_intervals)


def _check_policy(look: Look, question: Question, policy: npt.NDArray[Any], outlook: Outlook) -> None:
    """Require that the policy was pre-specified, or that the pilot names it."""
    bets, options = look.witness["bets"], look.certificate["options"]
    is_prespecified = options["policy"] == "given" and not all(options["objectives"])  # policies have no text
    if is_prespecified and len(bets["shares"]) == 1:
        return
    candidates = candidates_of(question, outlook)
    fits = len(candidates) == len(bets["shares"]) and np.array_equal(candidates[bets["policy"]], policy)
    require(fits, "bets are on another policy than those that the pilot leads to")


def _check_bets(bets: dict[str, Any], table: OpenChain, moments: BetMoments, errors: Errors, order: Indices) -> None:
    plan = plan_of(table, moments, errors)
    if plan is None:
        raise Rejected("the pilot leaves nothing to bet on")
    for name, own in fixed_part(plan, make_reference(plan, errors.rows, errors.ball), order).items():
        _require_close(own, bets[name], f"{name}: others than those that the pilot leads to")
    for name, sign in (("lower", -1), ("upper", 1)):
        side = bets["sides"][name]
        for b in range(len(side["weights"])) if side is not None else ():
            until = BetMoments((*moments.counts[: b + 1], moments.counts[b]), moments.lengths[: b + 1], moments.planned)
            found = make_stages(plan, until, sign)[b].weight[order]
            what = f"the weights of stage {b} are not what the data before it lead to"
            _require_close(found, side["weights"][b], what)


def _require_close(found: Any, given: Any, what: str) -> None:
    mine, theirs = (np.concatenate([np.zeros(0), *map(np.atleast_1d, each)]) for each in (found, given))
    scale = max(float(np.abs(each).max(initial=0.0)) for each in (mine, theirs))
    require(mine.shape == theirs.shape and bool((np.abs(mine - theirs) <= _CLOSE * scale).all()), what)
