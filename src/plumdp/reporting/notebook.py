"""Certificates in notebooks: the claim, a picture of the bounds, and the facts behind it; light, and all escaped."""

from __future__ import annotations

from html import escape

from plumdp.model.text import html_table
from plumdp.reporting.bounds_picture import bounds_svg
from plumdp.result.certificate import Certificate


def certificate_html(certificate: Certificate) -> str:
    """Return a certificate in HTML."""
    picture = bounds_svg(certificate)
    drawn = f'<div style="max-width:36rem">{picture}</div>' if picture else ""
    return f"<p><b>{escape(certificate.headline)}</b></p>{drawn}{html_table(certificate.facts())}"
