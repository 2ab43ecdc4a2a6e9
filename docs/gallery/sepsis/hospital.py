"""Stands for the hospital: keeps the log, and knows what no log shows. It is the benchmark ICU-Sepsis.

Choudhary, Gupta and Thomas (2024): ICU-Sepsis: A Benchmark MDP Built from Real Medical Data. A state is a patient's
condition in a block of four hours, one of 713. An action is 5 * fluids + vasopressor, each from 0 (none) to 4 (most).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

Numbers: TypeAlias = npt.NDArray[np.int64]
Shares: TypeAlias = npt.NDArray[np.float64]
Rule: TypeAlias = Callable[[Mapping[str, Any]], str]

_FOLDER = Path(find_spec("icu_sepsis").submodule_search_locations[0]) / "envs" / "assets"  # importing it warns of gym
_TABLES = np.load(_FOLDER / "dynamics.npz")
_LINES = (_FOLDER / "admissible_actions.txt").read_text().splitlines()

N, DIED, SURVIVED, ADMITTED = 713, 713, 714, 715  # how many states there are in intensive care, and the others
STATUS = ["icu"] * N + ["died", "survived", "admitted"]
START = {"status": "admitted", "state": ADMITTED}
MOVES, ADMISSION, SOFA = _TABLES["tx_mat"][:N], _TABLES["d_0"][:N], _TABLES["sofa_scores"][:N].round(1)
SEVERITY = np.digitize(SOFA, [5, 8])  # 0 up to a SOFA score of 5, 1 up to 8, and 2
ADMISSIBLE = np.array([np.isin(np.arange(25), [int(a) for a in line.split()]) for line in _LINES[1 : N + 1]])
CLINICIANS = np.where(ADMISSIBLE, _TABLES["expert_policy"][:N], 0)
CLINICIANS /= CLINICIANS.sum(axis=1, keepdims=True)
DOSE = np.where(np.arange(25) < 15, "restrictive", "liberal")  # fluids of level 0 to 2, or 3 and 4
DOSES = {name: ADMISSIBLE & (name == DOSE) for name in ("restrictive", "liberal")}
OVERLAP = DOSES["restrictive"].any(axis=1) & DOSES["liberal"].any(axis=1)


def write_log(path: str, patients: int, rule: Rule | None = None) -> pd.DataFrame:
    """Write and return the stays of so many patients, one row per block of four hours.

    They are treated as the clinicians do; or they are other patients, and in intensive care the rule names the dose.
    """
    rng = np.random.default_rng(1 if rule is None else 2)
    number = np.cumsum(ADMISSIBLE).reshape(ADMISSIBLE.shape) - 1  # of the row of each admissible action
    doses, moves = _summed(CLINICIANS if rule is None else _taken(rule)), _summed(MOVES[ADMISSIBLE])
    patient = np.arange(patients)
    state = _draw(_summed(ADMISSION[None]), np.zeros_like(patient), rng)
    blocks = [(patient, np.full_like(patient, ADMITTED), np.zeros_like(patient))]
    while len(patient):
        is_icu, action = state < N, np.zeros_like(state)
        action[is_icu] = _draw(doses, state[is_icu], rng)
        blocks.append((patient, state, action))
        patient, row = patient[is_icu], number[state[is_icu], action[is_icu]]
        state = _draw(moves, row, rng)
    block = np.repeat(np.arange(len(blocks)), [len(rows) for rows, _, _ in blocks])
    patient, state, action = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    order = np.argsort(patient, kind="stable")
    table = _table(patient[order], block[order], state[order], action[order])
    if rule is not None:
        ordered = np.array([*_named(rule), "none", "none", "admit"])
        table["action"] = pd.Categorical(ordered[state[order]])
    table.to_parquet(path, index=False)
    return table


def _table(patient: Numbers, block: Numbers, state: Numbers, action: Numbers) -> pd.DataFrame:
    """Return the log, with the condition of the patient in full, and with the little that models shall know of it."""
    dose = np.where(state < N, DOSE[action], np.where(state == ADMITTED, "admit", "none"))
    shown = {"sofa": SOFA, "severity": SEVERITY, "overlap": OVERLAP}
    return pd.DataFrame(
        {
            "patient": patient,
            "block": block,
            "state": state,
            "status": pd.Categorical.from_codes(np.maximum(state - N + 1, 0), ["icu", "died", "survived", "admitted"]),
            **{name: np.pad(values, (0, 3))[state] for name, values in shown.items()},
            "fluids": action // 5,
            "vasopressor": action % 5,
            "action": pd.Categorical(dose),
        }
    )


def possible(patient: Any) -> dict[str, list[Any]]:
    """Return for each dose that a patient may get where it may lead; patients have a status and a state."""
    if patient.state in (DIED, SURVIVED):
        return {"none": [patient]}
    if patient.state == ADMITTED:
        rows = {"admit": ADMISSION}
    else:
        given = {dose: is_meant[patient.state] for dose, is_meant in DOSES.items()}
        rows = {dose: MOVES[patient.state][chosen].sum(axis=0) for dose, chosen in given.items() if chosen.any()}
    after = {dose: np.flatnonzero(row).tolist() for dose, row in rows.items()}
    return {dose: [patient._replace(status=STATUS[to], state=to) for to in states] for dose, states in after.items()}


def every_action(patients: int) -> tuple[Any, Shares, Any]:
    """Return the table with all 25 actions, the probability of each choice of the clinicians, and counts of patients.

    Patients are admitted by the action 0.
    """
    import plumdp
    from plumdp.model import table_model

    state, action = (np.append(each, last) for each, last in zip(np.nonzero(ADMISSIBLE), (ADMITTED, 0), strict=True))
    rows = np.vstack([MOVES[ADMISSIBLE], np.pad(ADMISSION, (0, MOVES.shape[2] - N))])
    row, after = np.nonzero(rows)
    labels = {"survived": lambda patients: patients.state == SURVIVED}
    model = table_model(state[row], action[row], after, initial=ADMITTED, labels=labels)
    graph, at = model.graph, model.graph.states["state"]
    known = np.full((len(STATUS), 25), -1)  # the row of each state and action
    known[state, action] = np.arange(len(state))
    names = np.array([int(name) if name.isdigit() else 0 for name in graph.action_names])[graph.action]
    of_choice = known[at[graph.state_of_choice()], names]
    choice = graph.choice_of_transition()
    truth = np.where(of_choice[choice] < 0, 1.0, rows[of_choice[choice], at[graph.successor]])
    practice = np.where(of_choice < 0, 1.0, np.append(CLINICIANS[ADMISSIBLE], 1.0)[of_choice])
    truth /= graph.sum_by_choice(truth)[choice]
    is_end = model.labels["deadlock"]
    return model, practice, plumdp.simulate(model, truth, patients, rng=1, max_steps=200, stop=is_end, policy=practice)


def survival(rule: Rule) -> float:
    """Return the true probability to survive if each patient gets the dose that the rule names."""
    moves = np.einsum("sa,sat->st", _taken(rule), MOVES, optimize=True)
    return float(ADMISSION @ np.linalg.solve(np.eye(N) - moves[:, :N], moves[:, SURVIVED]))


def beside_truth(model: Any, counts: Any, asked: str, **known: Any) -> pd.DataFrame:
    """Return bounds on three rules, the one that is certified and one dose for everybody, beside their true values."""
    import plumdp

    learned, rows = plumdp.learn(model, counts, objectives=[asked]), []
    for rule in ("certified", "restrictive", "liberal"):
        policy = plumdp.PolicyTable.from_actions(model.graph, rule) if rows else None
        found = plumdp.conclude(learned, asked, policy=policy)
        truth = survival(lambda patient, found=found: found.policy({**patient, **known}))
        rows.append((rule, *found.printed_bounds, f"{truth:.6f}", found.lower <= truth <= found.upper))
    return pd.DataFrame(rows, columns=["", "at least", "at most", "in truth", "holds"])


def largest_shift(rule: Rule) -> float:
    """Return by how much, in total variation, a row of a model by severity and overlap is off at most.

    Patients who are alike in severity, overlap and dose are in many states. Under the rule, they are in some of these
    more often than in the log, so that other steps follow.
    """
    named, in_log = _flows(_taken(rule)), _flows(CLINICIANS)
    seen, asked_for = (flow / np.maximum(flow.sum(axis=2, keepdims=True), 1e-300) for flow in (in_log, named))
    is_used = named.sum(axis=2) > 0
    return float(np.abs(seen - asked_for).sum(axis=2)[is_used].max() / 2)


def _taken(rule: Rule) -> Shares:
    """Return how often each action is taken in each state.

    Which of the actions of the named dose is taken is drawn as the clinicians draw it. Where they take none of them,
    and for any other name, they do as always.
    """
    taken = np.where(np.array(_named(rule))[:, None] == DOSE, CLINICIANS, 0)
    taken = np.where(taken.any(axis=1, keepdims=True), taken, CLINICIANS)
    return taken / taken.sum(axis=1, keepdims=True)


def _named(rule: Rule) -> list[str]:
    """Return the dose that the rule names in each state."""
    shown = zip(SEVERITY.tolist(), OVERLAP.tolist(), strict=True)
    return [rule({"status": "icu", "severity": severity, "overlap": overlap}) for severity, overlap in shown]


def _flows(taken: Shares) -> Shares:
    """Return how often a stay is expected to lead from each group of patients, by a dose, to each group or an end."""
    moves = np.einsum("sa,sat->st", taken, MOVES, optimize=True)
    visits = np.linalg.solve(np.eye(N) - moves[:, :N].T, ADMISSION)
    group = np.eye(8)[np.append(2 * SEVERITY + OVERLAP, [6, 7, 7])]
    has_dose = (np.where(OVERLAP[:, None] & (DOSE == "liberal"), 1, 0) == number for number in (0, 1))
    by_dose = [np.einsum("sa,sat->st", visits[:, None] * taken * given, MOVES, optimize=True) for given in has_dose]
    return np.stack([group[:N, :6].T @ flow @ group for flow in by_dose], axis=1)


def _summed(rows: Shares) -> Shares:
    """Return the sums of probabilities along each row, with the number of the row added: one sorted list."""
    sums = rows.cumsum(axis=1)
    return (sums / sums[:, -1:] + np.arange(len(rows))[:, None]).ravel()


def _draw(summed: Shares, row: Numbers, rng: np.random.Generator) -> Numbers:
    """Return an outcome of each of the rows, which all have as many."""
    n_outcomes = len(summed) // round(summed[-1])
    return np.searchsorted(summed, row + rng.random(len(row)), side="right") - row * n_outcomes
