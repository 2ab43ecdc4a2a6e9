"""Cuts the region of what was learned by evidence from other studies, and tests whether these agree with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from plumdp.base.clock import Clock
from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError, Option
from plumdp.confidence.studies import Study, studies_of
from plumdp.learning.learned import Learned
from plumdp.learning.methods import TABLE, Sets
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.parametric import ParametricMDP
from plumdp.region.build import project
from plumdp.region.conflict import NOTHING_FITS, Conflict
from plumdp.region.find import find_region
from plumdp.result.certificate import outward

_OPTION = Option("evidence")
_TOGETHER = "the other studies and these data exclude each other: leave out evidence, or ask what differs"


def allowed_studies(
    model: ParametricMDP, evidence: Mapping[str, tuple[int, int]] | None, kind: Sets, misfit: float
) -> tuple[Study, ...]:
    """Return the studies that evidence is about, or refuse evidence for sets beside which nothing is proved for it."""
    if evidence and kind == TABLE:
        why = ": the rows of this model have no parameters; leave it out"
        seen = (": ", Option("confidence_set", kind), " sees no parameters in this model; leave out one of both")
        raise DataError(Option("evidence", evidence), *((why,) if model.source is None else seen))
    if evidence and misfit:
        off = Option("misfit", misfit)
        raise DataError(off, ": rows that are off need not have the parameters of another study; leave out ", _OPTION)
    return studies_of(model, evidence)


def with_errors(studies: Sequence[Study], error: float) -> tuple[Study, ...]:
    """Return studies that divide an error equally."""
    return tuple(replace(study, error=equal_parts(error, len(studies))) for study in studies)


def with_studies(learned: Learned) -> Learned:
    """Return the result with its region cut by its studies, which become assumptions, or a conflict that names them."""
    whole, studies, clock = learned.region, learned.studies, Clock(dict(learned.seconds))
    if isinstance(whole, Conflict):
        return learned
    table = ExpressionTable.build([study.expression for study in studies], learned.model.space.names)
    lower, upper = project(whole, table)
    ranges = [*zip(lower.tolist(), upper.tolist(), strict=True)]
    of_data = float(1 - learned.budget["evidence"]) * learned.error
    p_values = [study.p_value(low, high, of_data) for study, (low, high) in zip(studies, ranges, strict=True)]
    find = partial(find_region, learned.model.space, learned.model.asked_expressions)
    region = find((*learned.bounds.constraints, *studies))
    clock.lap("region")
    if not isinstance(region, Conflict):
        words = tuple(map(_assumption, studies, p_values))
        return replace(learned, region=region, rests_on=(*learned.rests_on, *words), seconds=clock.laps)
    each = [*zip(studies, ranges, p_values, strict=True)]
    alone = [one for one in each if isinstance(find((*learned.bounds.constraints, one[0])), Conflict)]
    found = _conflict(alone or each)
    findings = tuple(_disagreement(study, p_value) for study, _, p_value in alone) or (_TOGETHER,)
    return replace(learned, region=replace(found, findings=findings), seconds=clock.laps)


def _assumption(study: Study, p_value: float) -> str:
    same = f"{study.text} is the same in the other study as in these data"
    agrees = f"{_counts(study)}; agreement with the data has the p-value {outward(p_value, 1, 2)}"
    trials = "its trials were independent and fixed in number"
    return f"{same} ({agrees}), {trials}, and it was chosen without looking at these data"


def _conflict(each: Sequence[tuple[Study, tuple[float, float], float]]) -> Conflict:
    """Return the conflict of studies and data, with what each says about the expression."""
    words = []
    for study, (low, high), _ in each:
        lower, upper = study.interval(study.error)
        words.append(f"{study.text} in [{lower:.6g}, {upper:.6g}] ({_counts(study)} in the other study)")
        words.append(f"{study.text} in [{low:.6g}, {high:.6g}] (these data)")
    return replace(NOTHING_FITS, constraints=tuple(words))


def _disagreement(study: Study, p_value: float) -> str:
    differs = f"does not agree with these data (p-value {outward(p_value, 1, 2)})"
    return f"the other study of {study.text} ({_counts(study)}) {differs}: leave out this evidence, or ask what differs"


def _counts(study: Study) -> str:
    return f"{study.successes:,} of {study.trials:,}"
