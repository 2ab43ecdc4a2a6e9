"""The page of the gallery on survival, at its small size: the band holds Kaplan and Meier at every month."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.night
def test_the_band_of_the_gallery_holds_kaplan_and_meier_at_every_month(tmp_path, monkeypatch):
    pytest.importorskip("lifelines")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(DOCS / "_extensions"), *sys.path])
    from gallery import with_small_sizes

    page = with_small_sizes((DOCS / "gallery" / "survival" / "index.md").read_text(encoding="utf-8"))
    known = {}
    for cell in re.findall(r"^```\{code-cell\}.*?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(cell, known)
    assert known["outside"] == []
    of_arm = known["ends"].query("arm == 'zidovudine'")
    estimate = 1 - known["KaplanMeierFitter"]().fit(of_arm.month, of_arm.status == "ill").predict(24)
    for name in ("by_months", "life_table"):
        assert known[name].lower < estimate < known[name].upper
    assert not known["counts"].report.censored_runs.notable()
    assert (tmp_path / "report.html").is_file()
