"""A policy as people read it: the values of the state variables, and the name of the action to take there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import read_whole, write_rows
from plumdp.base.errors import DataError, require_kind, require_path
from plumdp.base.json_values import parsed
from plumdp.data.observing import Observe, Places
from plumdp.model.graph import OUT_OF_TABLE, FloatArray, Graph, IntArray, own_array, read_only
from plumdp.model.named_policy import action_column, policy_by_name, share_column
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import as_choices, check_policy, likeliest
from plumdp.model.text import as_pandas, as_polars, html_table, number_of, one_line
from plumdp.relaxation.intervals import IntervalModel
from plumdp.result.policy_readers import POLICY_READERS, read_csv
from plumdp.result.policy_rules import DecisionTree, memory_after, memory_tree, python_of, rules_of, tree_of

_HALF = 0.5  # probability above which an action is the usual one

_FEW_STATES, _FEW_RULES = 10_000, 5  # of which rules are told in one line


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """One action per state, or probabilities of actions; called with an observation, it names the action to take.

    ``to_csv`` saves it, ``write_policy`` also in the formats of Storm and PRISM. ``to_python`` and ``to_rules`` return
    it as code and as text. A policy with memory, such as one that counts steps, has its memory among the variables
    (``graph.memory.names``); ``start`` follows it through a run.

    Parameters
    ----------
    graph
        The graph of the model that the policy is for.
    choice
        A choice for each state, or a probability for each choice: then ``weights`` has these, and ``choice`` the
        likeliest ones.
    chosen_by
        Marks of the data whose certificate the policy comes from, which it cannot be pre-specified to.

    Examples
    --------
    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> policy = PolicyTable(graph, graph.first_choice[:-1])
    >>> policy.action(money=10, step=0), policy({"money": 10, "step": 0})
    ('bet0', 'bet0')
    >>> policy("10/0", observe=lambda text: tuple(map(int, text.split("/"))))
    'bet0'
    """

    graph: Graph
    choice: IntArray  # (n_states): the number of the choice in the graph
    weights: FloatArray | None = field(default=None, init=False)  # (n_choices), if it draws in some state
    chosen_by: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        require_kind(self.graph, Graph, "PolicyTable takes the graph of a model, such as model.graph")
        given = as_choices(self.graph, check_policy(self.graph, self.choice))
        if given.dtype.kind == "f":
            object.__setattr__(self, "weights", own_array(given, np.float64))
            given = likeliest(self.graph, given)
        object.__setattr__(self, "choice", own_array(given, np.int32))

    @classmethod
    def from_actions(cls, graph: Graph, actions: Any, *, states: Any = None) -> PolicyTable:
        """Return the policy that takes the named action in each state.

        Parameters
        ----------
        actions
            A function of the state, which is a named tuple of its variables, that returns the name of an action. It is
            asked in each state that has several, and must not name an action that another state lacks. Or a dict from
            states to names; a state is a tuple of the values of its variables, in their order, or the value of the only
            one. Or a table, which is a data frame or a mapping of columns: one column for each state variable, and the
            column ``action``. Or one name, which is taken wherever there are several actions. States with one action
            may be left out; None stands for that action. Instead of a name, functions and dicts may have a dict from
            names to probabilities, and tables a further column ``probability`` with a row for each action: then the
            policy draws. A function whose parameters are called like the state variables gets their values instead of
            the state.
        states
            The states that a list or an array of names is for, in its order: a mapping of columns such as
            ``graph.states``, a data frame, or a list of states.

        >>> from plumdp import case_study
        >>> graph = case_study("betting:25").model.graph
        >>> PolicyTable.from_actions(graph, lambda s: "bet0" if s.money < 5 else "bet5").action(money=10, step=0)
        'bet5'
        """
        return cls(graph, read_only(policy_by_name(graph, actions, states)))

    @property
    def n_drawn(self) -> int:
        """The number of states in which the action is drawn."""
        return 0 if self.weights is None else int((self.weights[self.choice] < 1).sum())

    def __repr__(self) -> str:
        if self.weights is not None:
            return one_line(self, f"{number_of(len(self), 'state')}, draws in {self.n_drawn:,} of them")
        names, uses = np.unique(self.graph.action[self.choice], return_counts=True)
        often = [f"{self.graph.action_names[names[i]]} in {uses[i]:,}" for i in np.argsort(-uses, kind="stable")[:4]]
        return one_line(self, f"{number_of(len(self), 'state')}: {', '.join(often)}{', …' if len(names) > 4 else ''}")

    def _repr_html_(self) -> str:
        columns = self.columns()
        rows = [*zip(*(values[:10].tolist() for values in columns.values()), strict=True)]
        n_rows, thing = len(columns[action_column(self.graph)]), "state" if self.weights is None else "row"
        more = f"<p>{len(rows):,} of {number_of(n_rows, thing)}</p>"
        return html_table(rows, tuple(columns)) + more

    def __len__(self) -> int:
        return self.graph.n_states

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.choice if self.weights is None else self.weights
        return np.array(values, dtype=dtype) if copy else np.asarray(values, dtype=dtype)

    def __call__(
        self, observation: Any, *, observe: Observe | None = None, rng: np.random.Generator | None = None
    ) -> str:
        """Return the name of the action to take after an observation; a policy that draws it needs ``rng``.

        The observation is a mapping of the state variables, or the value of the only one, unless ``observe`` makes
        state variables of it, as in ``sample_env``.
        """
        return self._named(Places(self.graph, observe, self._known).state(observation, "policy"), rng)

    def start(self, *, observe: Observe | None = None) -> PolicyRun:
        """Return the policy for one run, which is called once for each step and keeps what the policy remembers.

        >>> from plumdp import case_study
        >>> from plumdp.model.question import ask
        >>> graph = ask('Pmax=? [ F<=9 "target" ]', case_study("rover:4,4,2").model).model.graph
        >>> run = PolicyTable(graph, graph.first_choice[:-1]).start()
        >>> first = run({name: values[0] for name, values in graph.memory.graph.states.items()})
        >>> run.memory
        {'step': 0}
        """
        return PolicyRun(self.graph, self._chosen, observe)

    def _named(self, state: int, rng: np.random.Generator | None = None) -> str:
        return self.graph.action_names[int(self.graph.action[self._chosen(state, rng)])]

    def _chosen(self, state: int, rng: np.random.Generator | None = None) -> int:
        choice = int(self.choice[state])
        if self.weights is not None and self.weights[choice] < 1:
            if not isinstance(rng, np.random.Generator):
                where = self.graph.describe_state(state)
                raise DataError(
                    f"state ({where}): the policy draws its action; call it with rng=..., a NumPy generator"
                )
            choices = slice(*self.graph.first_choice[state : state + 2].tolist())
            choice = choices.start + int(
                rng.choice(choices.stop - choices.start, p=self.weights[choices] / self.weights[choices].sum())
            )
        return choice

    @cached_property
    def _known(self) -> dict[Any, int]:
        """The states of valuations that were looked up before."""
        return {}

    def action(self, **valuation: Any) -> str:
        """Return the name of the action in the state with the given values of its variables."""
        unknown = set(valuation) ^ set(self.graph.states)
        if unknown:
            raise DataError(f"the state variables are {', '.join(self.graph.states)}; give a value for each of them")
        is_meant = np.ones(self.graph.n_states, dtype=np.bool_)
        for name, value in valuation.items():
            is_meant &= self.graph.states[name] == value
        if not is_meant.any():
            shown = ", ".join(f"{name}={value}" for name, value in valuation.items())
            raise DataError(f"the model has no state with {shown}")
        return self._named(int(np.argmax(is_meant)))

    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the state variables and the action as columns, one row per state.

        If the policy draws, there is a row for each action that it may take, with its probability as the last column.
        """
        graph, names = self.graph, np.array(self.graph.action_names, dtype=object)
        if self.weights is None:
            return {**graph.states, action_column(graph): names[graph.action[self.choice]]}
        taken = np.flatnonzero(self.weights)
        states = {name: values[graph.state_of_choice()[taken]] for name, values in graph.states.items()}
        return {
            **states,
            action_column(graph): names[graph.action[taken]],
            share_column(graph): self.weights[taken],
        }

    to_pandas = as_pandas
    to_polars = as_polars

    def listed(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the columns without states in which a table from a log knows no action."""
        kept = self._has_actions
        if self.weights is not None:
            kept = kept[self.graph.state_of_choice()[np.flatnonzero(self.weights)]]
        return {name: values[kept] for name, values in self.columns().items()}

    @property
    def _has_actions(self) -> npt.NDArray[np.bool_]:
        """Whether each state has actions of the model, and not just the one of states that a table does not know."""
        graph = self.graph
        names = np.array(graph.action_names, dtype=object)[graph.action[graph.first_choice[:-1]]]
        found = np.asarray((names != OUT_OF_TABLE) | (np.diff(graph.first_choice) > 1), dtype=np.bool_)
        return found if found.any() else ~found

    def by_state(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return columns with one row per state for maps, with "mostly north" or "drawn" where the action is drawn."""
        columns = dict(PolicyTable(self.graph, self.choice).columns())
        if self.weights is not None:
            *_, action = columns
            largest = self.weights[self.choice]
            is_mostly = (largest > _HALF) & (largest < 1)
            columns[action][is_mostly] = [f"mostly {name}" for name in columns[action][is_mostly]]
            columns[action][largest <= _HALF] = "drawn"
        return {name: values[self._has_actions] for name, values in columns.items()}

    def to_csv(self, path: str | Path) -> None:
        """Write one line per state, its variables and the action; or per action that may be drawn, with its share.

        States in which a table from a log knows no action have no line: there is nothing to choose. In a file that is
        called ``….sheet.csv``, an apostrophe stands before texts that a spreadsheet would run, such as ``=1+1``.
        """
        write_columns(path, self.listed())

    @cached_property
    def tree(self) -> DecisionTree:
        """The policy as a decision tree over the state variables, compared with the table in every state."""
        return tree_of(self.graph, self.choice, self.weights)

    def to_python(self) -> str:
        """Return a Python module with a function ``policy`` of the state variables, which needs nothing else.

        It compares variables as ``tree`` does, and was called in every state: it returns the name of the action, or of
        a policy that draws a dict from names to probabilities. It refuses values that no state has. Of a policy with
        memory, the module has a class ``Run`` as well, which keeps the memory through one run.
        """
        remembered = memory_tree(self.graph, self.choice, self.weights)
        code = python_of(self.graph, self.tree, remembered)
        module: dict[str, Any] = {}
        exec(code, module)  # our own text, so that the text itself is compared with the table
        states = [*zip(*(values.tolist() for values in self.graph.states.values()), strict=True)]
        differs = [module["policy"](*state) for state in states] != self.tree.done_in(self.graph.states)
        if remembered is not None:
            after = memory_after(self.graph, self.choice, self.weights).tolist()
            differs |= [module["remember"](*state) for state in states] != after
        if differs:
            raise AssertionError("the code differs from its policy; please report this")
        return code

    @property
    def short_rules(self) -> str:
        """The policy as rules in one line, of which the first that fits says the action; empty if they are many."""
        if len(self) > _FEW_STATES or self.tree.n_comparisons > _FEW_RULES:
            return ""
        rules = [rule for rule in self.to_rules().splitlines()[1:] if not rule.endswith(f": {OUT_OF_TABLE}")]
        return "" if any(rule.endswith(":") for rule in rules) else "; ".join(rules)

    def to_rules(self) -> str:
        """Return the policy as rules in plain text; the first rule that fits says the action.

        >>> from plumdp import case_study
        >>> graph = case_study("betting:25").model.graph
        >>> bold = PolicyTable.from_actions(graph, lambda money, step: "bet5" if money > 7 and step < 9 else "bet0")
        >>> size, *rules = bold.to_rules().splitlines()
        >>> print("\\n".join(rules))
        if step > 24:
            if step <= 25: end
            else: done
        if step > 8: bet0
        if money <= 7: bet0
        else: bet5
        """
        return rules_of(self.graph, self.tree)


def write_columns(path: str | Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns of equal length as a CSV file, with their names in the first line."""
    write_rows(path, columns, zip(*(values.tolist() for values in columns.values()), strict=True))


def read_policy(model: ParametricMDP | IntervalModel | Graph, path: str | Path) -> PolicyTable:
    """Return the policy in a file, for a model with the same states.

    Parameters
    ----------
    model
        The model, or its graph.
    path
        A CSV file such as ``PolicyTable.to_csv`` writes: a column for each state variable and one for the action, and a
        line for each state, in any order; of a policy that draws, such as ``advise`` writes, a line for each action
        with its ``probability``. A file that ends in ``.txt`` is PRISM's list of actions, ``(0,1):north`` for each
        state; one that ends in ``.json`` is a scheduler of Storm. States with one action may be left out.

    Returns
    -------
    PolicyTable
        The policy.

    Raises
    ------
    DataError
        If states or actions are not those of the model.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> with TemporaryDirectory() as folder:
    ...     PolicyTable(graph, graph.first_choice[:-1]).to_csv(Path(folder) / "policy.csv")
    ...     read_policy(graph, Path(folder) / "policy.csv").action(money=10, step=0)
    'bet0'
    """
    if not isinstance(model, Graph | IntervalModel):
        require_model("read_policy", model)
    require_path("read_policy", path)
    graph = model if isinstance(model, Graph) else model.graph
    suffix = Path(path).suffix.lower()
    if suffix in (".py", ".rules"):
        how = "import its function and give that as the policy" if suffix == ".py" else "write it as .csv as well"
        raise DataError(f"{path}: a policy is not read from such a file; {how}")
    reader = POLICY_READERS.get(suffix, read_csv)
    return PolicyTable(graph, reader(path, graph), _marks_beside(Path(path)))


def _marks_beside(path: Path) -> frozenset[str]:
    """Return the marks of the data of a policy whose file is part of a result."""
    try:
        return marks_of(parsed(read_whole(path.with_name("certificate.json")))["provenance"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return frozenset()  # there is none, or it is none of ours


def marks_of(provenance: Mapping[str, str]) -> frozenset[str]:
    """Return the marks of the data that a certificate rests on, given its provenance."""
    return frozenset(f"{provenance['counts']} {provenance.get('parts', '')}".split())


class PolicyRun:
    """Names the action to take after each observation of one run, from its first one on.

    It is called once for each step. A policy without memory may be followed from any state, one with memory from the
    initial state, as its memory begins there.
    """

    def __init__(
        self, graph: Graph, choose: Callable[[int, np.random.Generator | None], int], observe: Observe | None
    ) -> None:
        memory = graph.memory
        self._graph, self._choose = graph, choose
        self._places = Places(graph if memory is None else memory.graph, observe)
        self._choice: int | None = None  # the one that was taken last

    @property
    def memory(self) -> dict[str, Any]:
        """The values of the variables that the policy remembers, at the last observation."""
        memory = self._graph.memory
        if memory is None:
            return {}
        state = self._graph.initial_state if self._choice is None else self._graph.state_of(self._choice)
        return {name: self._graph.states[name][state].item() for name in memory.names}

    def __call__(self, observation: Any, *, rng: np.random.Generator | None = None) -> str:
        """Return the name of the action to take after an observation; a policy that draws it needs ``rng``."""
        self._choice = self._choose(self._state(observation), rng)
        return self._graph.action_names[int(self._graph.action[self._choice])]

    def _state(self, observation: Any) -> int:
        graph, memory = self._graph, self._graph.memory
        seen = self._places.state(observation, "policy")
        if memory is None:
            return seen
        if self._choice is None:
            possible = np.array([graph.initial_state])
            before = "a run begins in the initial state of the model"
        else:
            possible = graph.successor[graph.transitions_of(np.array([self._choice]))]
            before = f"{memory.graph.describe_choice(int(memory.choice[self._choice]))} does not lead there"
        state = possible[memory.state[possible] == seen]
        if not len(state):
            raise DataError(f"policy: ({memory.graph.describe_state(seen)}) cannot be observed now: {before}")
        return int(state[0])
