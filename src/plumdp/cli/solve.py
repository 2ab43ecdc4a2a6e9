"""``plumdp solve``: certified bounds on the value of an interval model, and a policy that attains them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import plumdp
from plumdp.base.errors import ModelError
from plumdp.base.vocabulary import VERDICT_CODES, Nature, Verdict
from plumdp.cli.inputs import load_interval_model, objective_of
from plumdp.cli.options import Options
from plumdp.cli.outputs import is_model_file, require_files, write_model, write_policy
from plumdp.cli.results import grid, prose, standard_output
from plumdp.cli.sources import chosen_properties
from plumdp.exchange.read_intervals import IntervalModel
from plumdp.model.text import number_of
from plumdp.solver.problem import Solution

if TYPE_CHECKING:
    from plumdp.model.language.threshold import Threshold
    from plumdp.model.objectives import Objective

SCHEMA = "plumdp/solution/1"
_NATURES = {"robust": "nature against it", "optimistic": "nature on its side"}


def solve(given: Options) -> int:
    """Print bounds on the best value, and write the model or the policy; without a property, convert the model."""
    from plumdp.exchange.policy_files import policy_writer
    from plumdp.model.language.threshold import Threshold

    if given.output is not None and not is_model_file(given.output):
        policy_writer(given.output)
    require_files(given)
    read, properties = load_interval_model(given)
    if is_model_file(given.output):
        written = write_model(read, given.output)
        if not given.property and not properties:
            print(json.dumps({"schema": SCHEMA, "written": [str(given.output)]}) if given.json else written)
            return 0
    question = _asked(given, read, properties)
    objective = objective_of(question)
    player = objective.nature or "robust"
    start = perf_counter()
    solution = plumdp.stages.solve(read, objective, nature=player, precision=given.width or 1e-6)
    facts = _facts(given.model, read, objective, player, solution, perf_counter() - start)
    if isinstance(question, Threshold):
        facts |= {"property": question.text, "verdict": _verdict(question, facts)}
        facts |= {"remark": _remark(question, facts)}
    if given.output is not None and not is_model_file(given.output):
        write_policy(plumdp.PolicyTable(read.graph, solution.policy), given.output)
    if given.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _print(facts, read, [] if given.output is None else [str(given.output)])
    return VERDICT_CODES[facts.get("verdict", Verdict.YES)]


def _asked(given: Options, model: IntervalModel, properties: Sequence[str]) -> Objective | Threshold:
    """Return the question: the given text, or the only property that comes with the model."""
    from plumdp.model.language.threshold import as_question

    asked = chosen_properties(given.model, given.property, properties) if given.property else properties
    if len(asked) != 1:
        choose = f"choose one with --property: {'; '.join(asked)}"
        none = "no property comes with the model; give one with --property"
        raise ModelError(f"{given.model}: {choose if asked else none}")
    return as_question(asked[0], model)


def _verdict(question: Threshold, facts: dict[str, Any]) -> Verdict:
    """Return the answer to a threshold: yes, no, or unknown where the bounds are too far apart."""
    sides = ("lower", "upper") if facts["direction"] == "max" else ("upper", "lower")
    reached, best = (question.holds_for(float(facts[side])) for side in sides)
    if not reached and best:
        return Verdict.INCONCLUSIVE
    return Verdict.YES if reached != question.is_negated else Verdict.NO


def _remark(question: Threshold, facts: dict[str, Any]) -> str:
    """Return the remark on a yes: a threshold without max or min asks for one policy, and PRISM's asks for all."""
    if facts["verdict"] != Verdict.YES or not question.of_all or facts["choices"] == facts["states"]:
        return ""
    asked = question.of_all
    if facts["has_intervals"] and facts["nature"] == "robust":  # nature against all policies pulls the same way
        asked = re.sub("(max|min)(?=[<>])", r"\1\1", asked)
    return f"Other policies may do worse: ask {asked} for all policies."


def _facts(
    name: str,
    model: IntervalModel,
    objective: Objective,
    player: Nature,
    solution: Solution,
    seconds: float,
) -> dict[str, Any]:
    from plumdp.base.json_values import json_value

    graph, start = model.graph, model.graph.initial_state
    lower, upper = float(solution.lower[start]), float(solution.upper[start])
    columns = {variable: values[start].item() for variable, values in graph.states.items()}
    return {
        "schema": SCHEMA,
        "model": name,
        "property": objective.text,
        "direction": objective.direction,
        "nature": player,
        "lower": json_value(lower),
        "upper": json_value(upper),
        "status": solution.status.name.lower(),
        "sweeps": solution.sweeps,
        "seconds": seconds,
        "states": graph.n_states,
        "choices": graph.n_choices,
        "transitions": graph.n_transitions,
        "has_intervals": bool((model.mdp.lower < model.mdp.upper).any()),
        "initial_state": columns,
        "action": graph.action_names[int(graph.action[solution.policy[start]])],
    }


def _print(facts: dict[str, Any], model: IntervalModel, files: list[str]) -> None:
    from plumdp.model.language.words import is_probability, value_in_words
    from plumdp.result.printing import bracket

    asked, ends = facts["property"], (float(facts["lower"]), float(facts["upper"]))
    what = value_in_words(asked) or "the value"
    under = "" if facts["choices"] == facts["states"] else " under the best policy"
    nature = f", with {_NATURES[facts['nature']]}" if facts["has_intervals"] else ""
    sizes = ", ".join(number_of(facts[f"{thing}s"], thing) for thing in ("state", "choice", "transition"))
    rows = [
        ("property", facts["property"]),
        ("nature", facts["nature"] if nature else "all probabilities are known"),
        ("model", sizes),
        (
            "first action",
            f"{facts['action'] or 'without a name'}, in {model.graph.describe_state(model.graph.initial_state)}",
        ),
        ("solver", f"{facts['status']}, {number_of(facts['sweeps'], 'sweep')}, {facts['seconds']:.2f} s"),
        ("written", ", ".join(files)),
    ]
    answers = {Verdict.YES: "Yes. ", Verdict.NO: "No. ", Verdict.INCONCLUSIVE: "Inconclusive with this --width. "}
    answer = answers[facts["verdict"]] if "verdict" in facts else ""
    console = standard_output()
    between = bracket(*ends, is_probability=is_probability(asked))
    value = f"{what[0].upper()}{what[1:]} is {between}{under}{nature}."
    console.print(prose(f"{answer}{value} {facts.get('remark', '')}".rstrip(), style="bold"))
    console.print(grid([row for row in rows if row[1]]))
