"""``python -m studies`` as a user types it."""

import pytest
from support.refusals import rows

from studies.__main__ import PAPER, main
from studies.registry import STUDIES

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return the folder that commands are typed in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.night
def test_the_paper_is_one_command(tmp_path, capsys):
    main(["paper", "-i", "betting:5", "-n", "300", "-j", "1"])
    assert capsys.readouterr().out.split() == [f"results/{name}-quick/results.md" for name in PAPER]
    figures = {path.stem for path in tmp_path.rglob("*.png")}
    assert figures == {"gaps", "seconds", "online", "ellipsoid"}
    report = (tmp_path / "results" / "table-quick" / "results.md").read_text(encoding="utf-8")
    assert report.startswith("# Study table (quick)\n\n`python -m studies paper -i betting:5 -n 300 -j 1` on ")


def test_help_has_a_line_for_each_study_and_measurement(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    for study in STUDIES:
        assert f"  {study.name:<16} {study.summary}\n" in text
    assert "  brackets         " in text
    assert "timing" not in text


@pytest.mark.night
def test_a_study_is_run_once_and_reported_each_time(capsys):
    arguments = ("scaling", "-i", "betting:5", "-i", "betting:6", "-n", "200", "-j", "1")
    main(arguments)
    first = capsys.readouterr()
    assert first.out == "results/scaling-quick/results.md\n"
    assert [line.partition(":")[0] for line in first.err.splitlines()] == ["scaling betting", "scaling betting"]
    main(arguments)
    assert capsys.readouterr() == (first.out, "2 of 2 cells are in results/scaling-quick/cells already\n")


@pytest.mark.night
def test_cells_of_a_job_array_come_together_in_one_report(tmp_path):
    for seed in "12":
        main(["online", "-i", "betting:5", "--seed", seed, "-n", "100", "-j", "1", "-o", str(tmp_path)])
    report = (tmp_path / "online-quick" / "results.md").read_text(encoding="utf-8")
    assert "Medians over 2 seeds after 100 episodes" in report


@pytest.mark.parametrize(("arguments", "message"), rows("commands:studies"))
def test_misuse_says_what_to_write(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert capsys.readouterr().err == f"error: {message}\n"
    assert not list(tmp_path.rglob("*.parquet"))
