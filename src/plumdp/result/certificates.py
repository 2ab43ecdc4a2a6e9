"""Several certificates, as ``compare`` and ``certify_all`` return them."""

from __future__ import annotations

import html

from plumdp.model.text import html_table
from plumdp.result.certificate import Certificate, premises_of


class Certificates(list[Certificate]):
    """A list of certificates, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        header = ("objective", "relaxation", "lower", "upper", "confidence", "status")
        rows = [
            (each.objective, each.relaxation, *each.printed_bounds, f"{each.confidence:.10g}", str(each.status))
            for each in self
        ]
        same = [i for i in (0, 4) if len({row[i] for row in rows}) == 1]  # columns that need no place in each row
        said = ", ".join(f"{header[i]} {rows[0][i]}" if i else rows[0][i] for i in same)
        kept = [i for i in range(len(header)) if i not in same]
        table = html_table([[row[i] for i in kept] for row in rows], [header[i] for i in kept])
        premises = html_table(premises_of(self))
        return (f"<p><b>{html.escape(said)}</b></p>{table}" if said else table) + premises
