"""The yardstick of brackets from few runs, and the page that is printed."""

from __future__ import annotations

from math import sqrt

import pytest

from studies import widths


@pytest.mark.night
def test_the_standard_error_of_one_coin_is_that_of_the_textbook(monkeypatch, tmp_path):
    """A walk of one place ends above if its coin says so: sqrt(p (1 - p) / n) at the frequency p of n runs."""
    monkeypatch.setattr(widths, "CASES", {"coin": lambda: widths.walk(1)})
    setting = widths.Setting("coin", 0, 200, "no order", 0.95, 200, str(tmp_path))
    log = widths.log_of("coin", 0, 200, str(tmp_path))
    p = (log.next_x == 1).mean()
    assert len(log) == 200
    assert widths.standard_error(setting) == pytest.approx(sqrt(p * (1 - p) / 200), rel=1e-3)


def test_ratios_are_medians_of_seeds_and_those_of_before_come_first():
    rows = [
        {"case": "c", "order": order, "runs": 30, "confidence": 0.9, "seed": seed, "checkout": checkout}
        | {"ratio": 1.0 + seed + checkout / 2, "seconds": 2.0, "holds": True}
        for order in widths.ORDERS
        for seed in range(3)
        for checkout in range(2)
    ]
    assert "| c | open | 2.00 → 2.50 | 2 → 2 |" in widths.table(rows, 0.9)
    assert "18 of 18 brackets" in widths.page(rows, [])
