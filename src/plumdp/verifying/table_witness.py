"""Makes the witness of a certificate of a table of unknown rows, which ``plumdp_verify/table_check.py`` checks."""

from __future__ import annotations

import json
from typing import Any, cast

from plumdp.learning.learned import Learned
from plumdp.model.elsewhere import elsewhere_of
from plumdp.model.objective import Kind
from plumdp.model.question import Question
from plumdp.result.certificate import Certificate
from plumdp.tables.table_set import TableSet
from plumdp.verifying.model_parts import shares_part
from plumdp.verifying.table_bets_part import Ends, bets_part, unknown_error
from plumdp.verifying.table_chain_part import TableRows, data_part, intervals_part, support_part, table_chain_part
from plumdp.verifying.table_values_part import rounded_outward, values_part
from plumdp_verify.reading import Part, Rejected
from plumdp_verify.table_chain import read_counts, read_table_chain
from plumdp_verify.table_values import read_intervals

_MOST_NODES = 5_000  # of which values against nature are found within a minute


def refuse_unknown_tables(learned: Learned, question: Question) -> None:
    """Refuse by name the tables that verify does not know."""
    not_plain = question.model.lift is not None or question.objective.n_steps is not None
    unknown = {
        "unknown rows beside parameters": learned.model.source is not None,
        "rewards, steps and memory in tables that runs may leave": elsewhere_of(learned.model) is not None
        and (not_plain or (question.objective.flipped() or question.objective).kind is not Kind.END),
        "averages in tables of unknown rows": question.objective.kind is Kind.AVERAGE,
    }
    for what, is_so in unknown.items():
        if is_so:
            raise unknown_error(what)


def table_content(learned: Learned, question: Question, certificate: Certificate) -> dict[str, Any]:
    """Return the parts of a witness that are about a table: counts, chain, intervals, values and bets."""
    found, rows = cast("TableSet", learned.bounds), TableRows.of(learned.model)
    chain, keys = table_chain_part(question, certificate.policy, rows)
    support = support_part(question.model, rows)
    used = {row[2] for row in chain["rows"] if row is not None and isinstance(row[2], int)} | {
        row for row, _ in support
    }
    content: dict[str, Any] = {
        "kind": "table",
        "budget": {"error": learned.error, "shares": shares_part(learned.budget)},
        **data_part(learned.model, learned.counts, found.moments, rows),
        "chain": chain,
        "intervals": intervals_part(learned, found, rows, used),
        "values": None,
        "bets": None,
        **({"support": support} if support else {}),
    }
    try:
        witness = Part(json.loads(json.dumps(content)), "witness")
        counts = read_counts(witness)
        read = read_table_chain(witness["chain"], counts)
        intervals = read_intervals(witness["intervals"], counts, read)
    except Rejected:  # which the checker says again
        return content
    if len(read.nodes) > _MOST_NODES:
        raise unknown_error(f"chains of tables with more than {_MOST_NODES:,} open nodes")
    content["values"] = values_part(read, intervals)
    if read.initial is not None:
        lower, upper = certificate.lower, certificate.upper
        ends = (1 - upper, 1 - lower) if read.complement else (lower, upper)
        bounds = rounded_outward(content["values"], -1), rounded_outward(content["values"], 1)
        open_keys = [key for key, number in zip(keys, read.numbers, strict=True) if number is not None]
        proved = (float(each[read.initial]) for each in bounds)
        content["bets"] = bets_part(learned, question, certificate, open_keys, bounds, Ends(*ends, *proved))
    return content
