"""Certifies one question for several candidate models, so that one of them may be chosen after looking.

Each of k models has a k-th of the error. The event that the bracket or the test of some model fails has at most the
probability of the sum (union bound), so that all brackets hold at once, each if its model is right. Whoever then picks
the narrowest, or the one with the best p-value, picks one that holds. At full error each, the pick would fail more
often than it says: nested models, such as rows that are tied, tied by severity, or free, may all be right at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nextafter
from typing import ClassVar

from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError, ModelError
from plumdp.base.vocabulary import Relaxation, Status
from plumdp.certifying.pipeline import certify
from plumdp.data.counts import TransitionCounts
from plumdp.data.log import Log
from plumdp.learning.methods import Sets, error_of
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import one_line
from plumdp.result.certificate import Certificate
from plumdp.result.printing import outward, percent
from plumdp.result.show import Fact, Page, as_html, as_json, as_text


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """The certificates of several models for one question, which hold jointly with the confidence.

    Each certificate has its own part of the error, so that its confidence is higher than that of the comparison.
    """

    certificates: Mapping[str, Certificate]  # by name of the model, as given
    confidence: float

    @property
    def contradicted(self) -> tuple[str, ...]:
        """The names of the models that the data contradict."""
        return tuple(name for name, each in self.certificates.items() if each.status == Status.CONTRADICTED)

    @property
    def possible(self) -> tuple[str, ...]:
        """The names of the models that the data do not contradict."""
        return tuple(name for name in self.certificates if name not in self.contradicted)

    @property
    def sentence(self) -> str:
        """Which models are contradicted, and what may be done with the others."""
        share = percent(self.confidence)
        if not self.possible:
            return f"The data contradict all {len(self.certificates)} models, with confidence {share}."
        refuted = f"The data contradict {', '.join(self.contradicted)}" if self.contradicted else ""
        left = f"{refuted + ', but not' if refuted else 'The data do not contradict'} {', '.join(self.possible)}."
        return (
            f"{left} Choose any model after looking: all bounds hold jointly with confidence {share}, each if its "
            "model is correct. That a model is not contradicted does not show that it is correct."
        )

    def __repr__(self) -> str:
        return one_line(self, f"{len(self.possible)} of {len(self.certificates)} possible", f"{self.confidence:.10g}")

    def page(self) -> Page:
        """Return which models are contradicted, bounds, p-value and status of each, and what these rest on."""
        rows = [
            (name, *each.printed_bounds, _p_value(each), str(each.status)) for name, each in self.certificates.items()
        ]
        return Page(self.sentence, header=("model", "lower", "upper", "p", "status"), rows=rows, facts=self.premises())

    @property
    def assumptions(self) -> list[str]:
        """What the certificates rest on, in words."""
        return [text for label, text in self.premises() if label == "assuming"]

    SCHEMA: ClassVar[str] = "plumdp/model-comparison/1"
    TOLD: ClassVar[str] = "confidence sentence contradicted assumptions models=certificates"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json

    def premises(self) -> list[Fact]:
        """Return data and assumptions, those of some models with their names: labels and texts."""
        of_models: dict[Fact, list[str]] = {}
        for name, each in self.certificates.items():
            for fact in each.premises():
                if fact[0] in ("data", "assuming"):  # tests of models are in the table
                    of_models.setdefault(fact, []).append(name)
        n = len(self.certificates)
        return [
            (label, text if len(names) == n else f"{', '.join(names)}: {text}")
            for (label, text), names in of_models.items()
        ]


def compare_models(
    models: Mapping[str, ParametricMDP],
    counts: TransitionCounts | Log | Mapping[str, TransitionCounts | Log],
    objective: str,
    *,
    relaxation: Relaxation | None = None,
    precision: float = 1e-6,
    threads: int | None = None,
    confidence: float = 0.999,
    confidence_set: Sets | None = None,
    misfit: float = 0.0,
) -> ModelComparison:
    """Return a certificate for each of several models, which hold jointly, so that one may be chosen after looking.

    Parameters
    ----------
    models
        The candidates by name, such as the same graph with other ties. All of them are fixed before the data are seen.
    counts
        Those of all models if they have the same graph, or of each model by its name.
    objective
        The question to every model, as text.
    relaxation, precision, threads, confidence_set, misfit
        As in ``certify``.
    confidence
        Probability that all statements hold simultaneously; each model has an equal share of the error.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> from plumdp.model.language.constraint import cut_model
    >>> study = case_study("betting:5")
    >>> narrow = cut_model(study.model, ["p >= 0.8"])
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> comparison = compare_models({"any": study.model, "favourable": narrow}, counts, study.objective.text)
    >>> comparison.contradicted
    ('favourable',)
    """
    if not isinstance(models, Mapping) or not models:
        raise ModelError("compare_models takes models by name, such as {'tied': tied, 'free': free}")
    counts_by_model = counts if isinstance(counts, Mapping) else dict.fromkeys(models, counts)
    missing = [name for name in models if name not in counts_by_model]
    if missing:
        raise DataError(f"counts: there are none of the model {missing[0]!r}; give counts for each name")
    share = confidence_of_each(confidence, len(models))
    certificates = {
        name: certify(
            model,
            counts_by_model[name],
            objective,
            relaxation=relaxation,
            precision=precision,
            threads=threads,
            confidence=share,
            confidence_set=confidence_set,
            misfit=misfit,
        )
        for name, model in models.items()
    }
    return ModelComparison(certificates, confidence)


def confidence_of_each(confidence: float, n_models: int) -> float:
    """Return the confidence of each of several models, whose errors sum to at most that of the whole.

    >>> 1 - confidence_of_each(0.9, 4) <= (1 - 0.9) / 4
    True
    """
    error = equal_parts(error_of(confidence), n_models)
    share = 1 - error
    while 1 - share > error:  # rounded up: a smaller error is safe
        share = nextafter(share, 1.0)
    return share


def _p_value(certificate: Certificate) -> str:
    return "not tested" if certificate.p_value is None else outward(certificate.p_value, 1, 2).lower()
