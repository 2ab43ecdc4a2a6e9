"""Learns from model and counts, and asks at once: what most tests do before they look at an answer."""

import plumdp as pl
from plumdp.certifying.improvement import with_baseline
from plumdp.certifying.pipeline import announcing
from plumdp.explaining.explain import learn_again
from plumdp.model.question import ask, memory_for
from plumdp.result.certificate import Certificates


def compare(
    model,
    counts,
    objective,
    *,
    relaxations=None,
    policy=None,
    announced=False,
    runs=None,
    memory=True,
    precision=1e-6,
    **learning,
):
    """Return a certificate for each relaxation."""
    question = ask(objective, model, memory=memory if policy is None else memory_for(model, policy))
    question = announcing(question, policy, announced=announced, runs=runs)
    learned = pl.learn(model, counts, objectives=[question], **learning)
    return pl.compare(learned, question, relaxations=relaxations, policy=policy, precision=precision)


def certify_all(model, counts, objectives, *, relaxation=None, **learning):
    """Return a certificate for each objective, which hold jointly."""
    learned = pl.learn(model, counts, objectives=objectives, **learning)
    return Certificates(pl.conclude(learned, each, relaxation=relaxation) for each in learned.questions)


def improve(model, counts, objective, *, over="practice", announced=False, margin=0.0, **learning):
    """Return the policy with the largest certified gain over a baseline."""
    asked = with_baseline([objective], model, over, announced=announced)
    learned = pl.learn(model, counts, objectives=asked, **learning)
    return pl.decisions.improve(learned, objective, over=over, margin=margin)


def check_model(model, counts, *, runs=None, **learning):
    """Return the test of a model."""
    return pl.check_model(pl.learn(model, counts, **learning), runs=runs)


def explain(model, counts, certificate, **options):
    """Return the findings about a certificate."""
    return pl.explain(learn_again(model, counts, certificate), certificate, **options)
