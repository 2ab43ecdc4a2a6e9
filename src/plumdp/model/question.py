"""The ``Question``, an objective, and the model that it is about, whose rows are rows of the model that data count.

Data say something about parameters, and so about every model that is made of the same expressions. A question with
memory (first here, then there) is asked of a product of the counted model with an automaton: a larger model, each of
whose choices has the row of a counted one (``Lift``). Its value at a point of the region is the value that is asked
for, so that what was learned on the small model bounds it, whatever the product is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from plumdp.base.combinations import Trait, having, refuse
from plumdp.base.errors import UNSAID, ModelError, WhyNot
from plumdp.base.kinds import Kinds
from plumdp.model.graph import BoolArray, Graph, Indices
from plumdp.model.memory import count_steps, may_count_few, no_choices, with_memory
from plumdp.model.objectives import Kind, Objective, digest, is_objective
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy, memory_of
from plumdp.model.text import number_of, one_line
from plumdp.model.unmodelled_exits import out_of_table_of, settled
from plumdp.model.views import seen_as

PRACTICE = "practice"  # the policy that takes each action as often as the data do


def is_practice(policy: Policy | None) -> bool:
    """Return whether a policy is what the data do, whichever they are."""
    return isinstance(policy, str) and policy == PRACTICE


@dataclass(frozen=True, eq=False)
class Question:
    """A question about the value of an objective on a model, of the best policy unless one is given.

    Whoever gives a question to ``learn`` pre-specifies its policies: bets are placed on their values, or across the
    gradients of these. So you say by it that you chose them before you looked at the data, which certificates repeat. A
    policy that is known to come from these data is refused there; ``conclude`` takes any policy.

    Parameters
    ----------
    model
        The model that is asked about.
    objective
        What is asked, such as what ``parse_property`` returns.
    policy
        The policy whose value it is, by default the best one; "practice" takes each action as often as the data do.
    against
        Another policy: the question is then about the difference.
    forgets
        Why policies are sought that do not count steps, though these could do better.
    runs
        Whole runs under these policies, as ``read_whole_runs`` returns them: what they earned bounds values as well,
        without the model's probabilities, which says most where data are few. They may be in the counts too. By giving
        them you state that you chose the policies before looking at any of them: if ``counts.before_bets()`` did, give
        later runs alone.
    chosen_by, practised
        Marks of the data that the policies come from.

    Examples
    --------
    >>> from plumdp import case_study, parse_property
    >>> game = case_study("betting:5").model
    >>> Question(game, parse_property('R{"money"}max=? [ F "end" ]', game), policy="bet0", against="practice").against
    'practice'
    """

    model: ParametricMDP
    objective: Objective
    policy: Policy | None = None
    against: Policy | None = None
    forgets: str = ""  # why policies are sought that do not count steps, though these could do better
    runs: Any = None  # whole runs of the policies (``read_whole_runs``), whose outcomes bound their values as well
    chosen_by: frozenset[str] = frozenset()  # marks of data that led to the policies, as far as these know it
    practised: frozenset[str] = frozenset()  # "policy" or "against", if it is practice

    def __post_init__(self) -> None:
        if isinstance(self.objective, str):
            raise ModelError(
                f"{self.objective}: this is a text, not an objective; make the question with ask(text, model)"
            )
        self.objective.check_size(self.model.graph)
        is_rival = is_practice(self.against) and Trait.PRACTICE
        are_given = self.runs is not None and not isinstance(self.runs, WhyNot)
        refuse({are_given and Trait.RUNS, is_rival, self.against is not None and Trait.DIFFERENCE})
        has_exits = out_of_table_of(self.model) is not None  # a product counts steps already
        steps = {self.objective.n_steps is not None and Trait.STEPS, has_exits and Trait.EXITS}
        refuse(steps, self.objective.text or "the objective")
        object.__setattr__(self, "objective", settled(self.model, self.objective))
        for name in ("policy", "against"):
            given = getattr(self, name)
            if given is not None and not is_practice(given):  # a function is asked once
                object.__setattr__(self, "chosen_by", self.chosen_by | getattr(given, "chosen_by", frozenset()))
                object.__setattr__(self, name, check_policy(self.model.graph, given))

    @property
    def traits(self) -> frozenset[Trait]:
        """What may not go together with how it is answered."""
        return self.model.traits | having(
            out_of_table_of(self.model.counted) is not None and Trait.EXITS,
            self.objective.n_steps is not None and Trait.STEPS,
            self.objective.kind is Kind.AVERAGE and Trait.AVERAGE,
            self.runs is not None and Trait.RUNS,
            self.against is not None and Trait.DIFFERENCE,
        )

    @property
    def has_policies(self) -> bool:
        """Whether it is about policies that were given."""
        return self.policy is not None or self.against is not None

    @property
    def is_practised(self) -> bool:
        """Whether a policy of it is what was done, so that all runs of a log are runs of that."""
        is_of_chain = self.model.graph.is_chain and not self.has_policies
        return bool(self.practised) or is_practice(self.policy) or is_practice(self.against) or is_of_chain

    @property
    def is_beside_practice(self) -> bool:
        """Whether practice is compared with what it asks, and no bets are placed on that, as runs bound it."""
        return self.practised == {"against"} and self.against is None

    @property
    def is_controlled(self) -> bool:
        """Whether steps of practice's runs say more of the difference to another policy, in a table that both share."""
        return self.is_beside_practice and self.runs is not None and self.policy is not None and self.model.is_table

    @property
    def is_of_runs(self) -> bool:
        """Whether whole runs bound all that it asks, and not only the value of practice as one of two policies."""
        is_of_both = self.against is None and not self.is_beside_practice
        return self.runs is not None and (is_of_both or not self.practised)

    @property
    def prespecified(self) -> dict[str, str]:
        """The policies that it is about, by their names here: "practice" of first data, or one that was given."""
        there = {name for name in ("policy", "against") if getattr(self, name) is not None}
        names = sorted(there | self.practised, reverse=True)
        return {name: PRACTICE if name in self.practised else "given" for name in names}

    @property
    def text(self) -> str:
        """The property that is asked, or nothing if there is none or if policies belong to it, which have no text."""
        return "" if self.has_policies else self.objective.text

    def __repr__(self) -> str:
        return one_line(self, repr(self.objective), number_of(self.model.graph.n_states, "state"))

    def apart(self) -> tuple[Question, ...]:
        """Return a question about each of both policies, if it is about the difference of their values."""
        if self.against is None or self.runs is not None:
            return (self,)
        of_rival = frozenset({"policy"} if "against" in self.practised else ())
        rival = replace(self, policy=self.against, against=None, practised=of_rival)
        return replace(self, against=None), rival

    @property
    def remembers(self) -> bool:
        """Whether policies with memory were asked for, even if they turned out to be too large."""
        return self.model.graph.memory is not None or bool(self.forgets)

    @property
    def digest(self) -> str:
        """A hash of the model and the objective, which is the same if it is asked again, of whichever policy."""
        return f"{self.model.graph.fingerprint}:{digest(self.objective)}"


Asked: TypeAlias = Question | Objective | str
"""A question, or an objective or the text of a property about the model that was learned from."""


READERS: Kinds[type, Callable[[Any, Any], Objective]] = Kinds()
"""How an objective is read from what is asked of a model, by its type."""


def as_objective(objective: Objective | str, model: Any) -> Objective:
    """Return an objective, or the one that a text asks of the model."""
    for kind, read in READERS.items():
        if isinstance(objective, kind):
            return read(objective, model)
    if not is_objective(objective):
        shown = type(objective).__name__
        raise ModelError(
            f"give a property such as 'Pmax=? [ F \"goal\" ]', a Reach or a Reward as objective, not {shown}"
        )
    return objective


def ask(asked: Asked, about: ParametricMDP, *, memory: bool | Graph = True) -> Question:
    """Return a question, given the model that was learned from, or refuse one about other rows.

    An objective with a number of steps is asked of a product with a step counter, unless ``memory`` is False, so that
    policies may count steps. A mission or a budget is always asked of a product. A question is returned unchanged,
    unless a view of its model was learned from, of which it is then asked. If ``memory`` is the graph of a policy that
    counts steps, and the product is too large, then it is asked of that.

    >>> from plumdp import case_study
    >>> model = case_study("rover:4,4,2").model
    >>> asked = ask('Pmax=? [ F<=9 "target" ]', model)
    >>> [*asked.model.graph.states], asked.model.graph.memory.names
    (['x', 'y', 'unreported', 'sent', 'tries', 'step'], ('step',))
    """
    if not isinstance(asked, Question):
        objective = settled(about, as_objective(asked, about))
        counts = (
            objective.n_steps is not None and out_of_table_of(about) is not None
        )  # what is left depends on the step
        product = with_memory(about, objective) if memory or counts or isinstance(objective, Mission) else UNSAID
        if counts and isinstance(product, WhyNot):
            raise ModelError(
                f"{objective.text}: runs may leave the table, so that steps must be counted, but {product.reason}"
            )
        made = Question(about, objective, forgets=product.reason) if isinstance(product, WhyNot) else Question(*product)
        return narrowed_to(made, memory) if isinstance(memory, Graph) else made
    source = about.counted.source
    if source is not None and asked.model.counted is source:  # what was learned from is a view of the model
        _require_lifted(asked.model, source)
        return replace(asked, model=about if asked.model is about.source else seen_as(asked.model, about.counted))
    if asked.model is not about:
        _require_lifted(asked.model, about.counted)
    return asked


def memory_for(model: ParametricMDP, *policies: Policy) -> bool | Graph:
    """Return the memory of a question about given policies: theirs, and in a table one that bets can be placed with."""
    return memory_of(*policies) or model.counted.is_table


def may_narrow(question: Question) -> bool:
    """Return whether policies that count steps may be sought on a product of few choices, as the whole is too large."""
    return bool(question.forgets) and may_count_few(question.model, question.objective)


def narrowed(question: Question, keep: BoolArray) -> Question:
    """Return a question about policies that take the kept choices only, or the same one if these are too many."""
    product = count_steps(question.model, question.objective, keep=keep)
    return question if isinstance(product, WhyNot) else Question(*product)


def narrowed_to(question: Question, graph: Graph) -> Question:
    """Return a question on the product that a policy is for, if the product with all choices is too large."""
    memory = graph.memory
    if memory is None or memory.graph.fingerprint != question.model.graph.fingerprint or not may_narrow(question):
        return question
    keep = no_choices(question.model, question.objective)
    keep[graph.states[memory.names[0]][graph.state_of_choice()], memory.choice] = True
    return narrowed(question, keep)


def ask_all(asked: Sequence[Asked], about: ParametricMDP, *, memory: bool = True) -> tuple[Question, ...]:
    """Return all questions, or refuse the same one twice, however it is written."""
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        shown = repr(asked) if isinstance(asked, str) else type(asked).__name__
        raise ModelError(f"objectives={shown}: give a list of objectives, even if there is only one")
    questions = tuple(ask(each, about, memory=memory) for each in asked)
    digests = set()
    for question in questions:
        policies = (b"" if each is None else np.asarray(each).tobytes() for each in (question.policy, question.against))
        this = (question.digest, *policies)
        if this in digests:
            name = question.objective.text or "an objective without a text"
            raise ModelError(f"{name}: this is asked twice; ask it once")
        digests.add(this)
    return questions


def lifted_transitions(model: ParametricMDP) -> Indices:
    """Return for each transition (n_transitions) the counted transition at the same place of the same row."""
    graph, lift = model.graph, model.lift
    if lift is None:
        return np.arange(graph.n_transitions)
    choice = graph.choice_of_transition()
    place = np.arange(graph.n_transitions) - graph.first_transition[choice]
    lifted: Indices = lift.counted.graph.first_transition[np.asarray(lift.choice)[choice]] + place
    return lifted


def _require_lifted(model: ParametricMDP, counted: ParametricMDP) -> None:
    """Refuse a model whose rows are not those of the counted model, as nothing was learned about it."""
    if model.counted is not counted:
        raise ModelError(
            "the question is about another model than was learned from: give its model a Lift to the choices whose "
            "transitions were counted"
        )
    if model.lift is None:
        return
    graph, small, lifted = model.graph, counted.graph, np.asarray(model.lift.choice)
    same_sizes = np.array_equal(np.diff(graph.first_transition), np.diff(small.first_transition)[lifted])
    has_same = model.expressions is counted.expressions or (
        counted.gaps is not None and model.expressions.polynomials == counted.asked_expressions.polynomials
    )
    if not same_sizes or not has_same:
        raise ModelError("the question's model has rows that the counted model does not have")
    transition = lifted_transitions(model)
    differs = model.expression != counted.expression[transition]
    if graph.levels is None:  # a step must lead where the counted one does, whatever it does to the memory
        state = small.state_of_choice()[lifted[graph.first_choice[:-1]]]
        differs |= state[graph.successor] != small.successor[transition]
    if differs.any():
        choice = graph.choice_of_transition()[int(np.argmax(differs))]
        raise ModelError(f"choice {choice} of the question's model does not have the row that it is lifted from")
