"""``plumdp report``: about a saved result, and about a model with data; nothing is overwritten silently."""

import json
from functools import partial
from html import unescape

import pytest
from support import refusals
from support.command_line import plumdp
from typer.testing import CliRunner

import plumdp as pl
from plumdp.cli import app, main
from plumdp.result.folder import write_results

RUNNER = CliRunner()
STUDY = pl.case_study("betting:5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with counts, a result, and a folder of two results."""
    folder = tmp_path_factory.mktemp("reports")
    counts = pl.simulate(STUDY.model, STUDY.true_point, 1000, rng=1, max_steps=6)
    pl.write_counts(counts, folder / "counts.parquet")
    certificate = pl.certify(STUDY.model, counts, STUDY.objective)
    pl.write_result(certificate, folder / "result", model=STUDY.model, counts=counts)
    pl.write_result(certificate, folder / "bare")
    learned = pl.learn(STUDY.model, counts, objectives=[STUDY.objective])
    findings = pl.explain(learned, certificate, parts=["region", "policy"])
    write_results([(certificate, findings)] * 2, folder / "both", data=(STUDY.model, counts))
    (folder / "taken.html").write_text("mine")
    return folder


def run(folder, *arguments):
    """Return the exit code of a command with paths in the folder."""
    return RUNNER.invoke(app, ["report", *(argument.format(folder) for argument in arguments)])


@pytest.mark.slow
def test_a_result_gets_a_report_in_its_folder_which_is_still_a_result(folder, blank_pictures):
    result = run(folder, "{}/result")
    file = folder / "result" / "report.html"
    assert (result.exit_code, result.output) == (0, f"report: {file}\n")
    certificate = pl.read_result(folder / "result")
    shown = unescape(file.read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")
    assert certificate.headline in shown
    again = run(folder, "{}/result")
    assert str(again.exception) == f"{file} already exists; choose another file, or replace it with --force"
    assert run(folder, "{}/result", "--force").exit_code == 0
    pl.write_result(certificate, folder / "result", force=True)
    assert not file.exists()


@pytest.mark.parametrize("ending", ["csv", "txt", "py", "rules"])
def test_the_policy_of_a_result_is_written_without_its_data(folder, tmp_path, ending):
    """The file is the one that the policy of the same certificate gives with its model at hand."""
    from plumdp.exchange import write_policy

    model, mine, theirs = STUDY.model, tmp_path / f"mine.{ending}", tmp_path / f"theirs.{ending}"
    write_policy(pl.read_result(folder / "bare", model).policy, theirs)
    result = RUNNER.invoke(app, ["export", str(folder / "bare"), "-o", str(mine)])
    assert (result.exit_code, result.output[: len(str(mine)) + 9]) == (0, f"{mine}: policy,")
    assert mine.read_text() == theirs.read_text()


@pytest.mark.parametrize("name", ["learned.umb", "policy.json"])
def test_what_takes_a_model_is_not_written_from_a_result(folder, tmp_path, name):
    """Storm numbers all choices of a model, and a result has those that were taken."""
    result = RUNNER.invoke(app, ["export", str(folder / "bare"), "-o", str(tmp_path / name)])
    assert "this takes the model; write it with plumdp certify MODEL DATA... --policy" in str(result.exception)


@pytest.mark.night
def test_several_results_get_a_report_each(folder, blank_pictures):
    result = run(folder, "{}/both", "--json")
    files = [str(folder / "both" / f"{k}" / "report.html") for k in (1, 2)]
    assert json.loads(result.output) == {"schema": "plumdp/report/1", "files": files}


@pytest.mark.slow
def test_a_model_with_data_is_certified_and_reported_in_one_go(folder, blank_pictures):
    about = ["--title", "Five bets", "--system", "the game"]
    result = run(folder, "betting:5", "{}/counts.parquet", "-o", "{}/new.html", "--confidence", "0.99", *about)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Certified: under the recommended policy, the ")
    assert result.output.endswith(f"report: {folder / 'new.html'}\n")
    text = (folder / "new.html").read_text(encoding="utf-8")
    assert "With a confidence of 99\N{NO-BREAK SPACE}%, the expected “money” until the game reaches “end” is" in text
    assert "<h1>With a confidence of 99" in text
    assert "the game · " in text
    assert "What each relaxation certifies" in text


@pytest.mark.night
def test_several_properties_get_numbered_files_with_their_answers(folder, blank_pictures):
    asked = ["-p", 'R{{"money"}}>=5 [ F "end" ]', "-p", 'R{{"money"}}>=40 [ F "end" ]']
    result = run(folder, "betting:5", "{}/counts.parquet", "-o", "{}/all.html", *asked)
    assert result.exit_code == 1  # one of them is answered with no
    pages = [(folder / f"all-{k}.html").read_text(encoding="utf-8") for k in (1, 2)]
    assert "<h1>Yes (confidence 99.9\xa0%): the recommended policy has at least " in pages[0]
    assert "<h1>No (confidence 99.9\xa0%): no policy has more than " in pages[1]


def test_misuse_ends_with_a_sentence(folder):
    refusals.misused("commands:report", partial(plumdp, "report"), folder)
    assert (folder / "taken.html").read_text() == "mine"
    assert not (folder / "x.html").exists()


@pytest.mark.night
def test_a_result_knows_the_command_and_its_report_shows_everything(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for command in (
        ["certify", "betting:5", "counts.parquet", "-o", str(tmp_path / "result")],
        ["report", str(tmp_path / "result")],
    ):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0
    typed = " ".join(["plumdp certify betting:5 counts.parquet -o", str(tmp_path / "result")])
    assert pl.read_result(tmp_path / "result").rests_on.provenance["command"] == typed
    text = (tmp_path / "result" / "report.html").read_text(encoding="utf-8")
    assert typed in text
    assert "What each relaxation certifies" in text
    assert capsys.readouterr().out.endswith(f"report: {tmp_path / 'result' / 'report.html'}\n")
