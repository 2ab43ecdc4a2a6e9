"""Several certificates, as ``compare`` returns them."""

from __future__ import annotations

from plumdp.result.certificate import Certificate, premises_of
from plumdp.result.show import Page, as_html


class Certificates(list[Certificate]):
    """A list of certificates, which notebooks show as a table."""

    def page(self) -> Page:
        """Return the bounds of each, and what all of them rest on."""
        header = ("objective", "relaxation", "lower", "upper", "confidence", "status")
        rows = [
            (each.objective, each.relaxation, *each.printed_bounds, f"{each.confidence:.10g}", str(each.status))
            for each in self
        ]
        same = [i for i in (0, 4) if len({row[i] for row in rows}) == 1]  # columns that need no place in each row
        said = ", ".join(f"{header[i]} {rows[0][i]}" if i else rows[0][i] for i in same)
        kept = [i for i in range(len(header)) if i not in same]
        cells = [[row[i] for i in kept] for row in rows]
        return Page(said, header=[header[i] for i in kept], rows=cells, facts=premises_of(self))

    _repr_html_ = as_html
