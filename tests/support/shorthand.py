"""Learns from model and counts, and asks at once: what most tests do before they look at an answer."""

from dataclasses import replace

import plumdp as pl
from plumdp.certifying.improvement import with_baseline
from plumdp.certifying.pipeline import prespecifying
from plumdp.explaining.explain import learn_again
from plumdp.model.question import ask, memory_for
from plumdp.result.certificate import Certificates
from plumdp.result.claim import contradicted


def compare(
    model,
    counts,
    objective,
    *,
    relaxations=None,
    policy=None,
    prespecified=False,
    runs=None,
    memory=True,
    precision=1e-6,
    **learning,
):
    """Return a certificate for each relaxation."""
    question = ask(objective, model, memory=memory if policy is None else memory_for(model, policy))
    question = prespecifying(question, policy, prespecified=prespecified, runs=runs)
    learned = pl.learn(model, counts, objectives=[question], **learning)
    return pl.compare(learned, question, relaxations=relaxations, policy=policy, precision=precision)


def certify_all(model, counts, objectives, *, relaxation=None, **learning):
    """Return a certificate for each objective, which hold jointly."""
    learned = pl.learn(model, counts, objectives=objectives, **learning)
    return Certificates(pl.conclude(learned, each, relaxation=relaxation) for each in learned.questions)


def improve(model, counts, objective, *, over="practice", prespecified=False, margin=0.0, **learning):
    """Return the policy with the largest certified gain over a baseline."""
    asked = with_baseline([objective], model, over, prespecified=prespecified)
    learned = pl.learn(model, counts, objectives=asked, **learning)
    return pl.decisions.improve(learned, objective, over=over, margin=margin)


def check_model(model, counts, **learning):
    """Return the test of a model."""
    return pl.check_model(pl.learn(model, counts, **learning))


def explain(model, counts, certificate, **options):
    """Return the findings about a certificate."""
    return pl.explain(learn_again(model, counts, certificate), certificate, **options)


def said(certificate):
    """Return the fields of all records of a certificate."""
    return {name: value for record in vars(certificate).values() for name, value in vars(record).items()}


def altered(certificate, **told):
    """Return a certificate with other fields in its records."""
    assert told.keys() <= said(certificate).keys()
    own = {name: {each: told[each] for each in vars(of) if each in told} for name, of in vars(certificate).items()}
    found = replace(certificate, **{name: replace(of, **own[name]) for name, of in vars(certificate).items()})
    return replace(found, claim=contradicted(found.claim, found.how, found.rests_on))
