"""Pages about the command line: their files are written, their commands run, and they print what the pages show."""

import ast
import io
import json
import os
import re
import runpy
import shlex
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml
from command_line import plumdp

from plumdp.cli.errors import EXIT_CODES

DOCS = Path(__file__).parents[2] / "docs"
HOWTO = ("automate", "watch", "dirty_logs", "agents", "exchange", "many_units")  # which take seconds each
BY_DAY = ("howto/cli.md", "howto/start.md", "tutorial.md", "index.md", "../README.md")
PAGES = [*BY_DAY, *(pytest.param(f"howto/{name}.md", marks=pytest.mark.night) for name in HOWTO)]
RECORD = '#!/bin/sh\n(for each in "$@"; do printf "%s\\037" "$each"; done; echo) >> commands\n'  # in place of plumdp
FILE = re.compile(r"^`([\w.]+)`[^\n]*:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(page):
    return (DOCS / page).read_text(encoding="utf-8")


def steps(block):
    """Return commands with what the page shows below them."""
    found = re.split(r"^\$ (.*)\n", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]
    return list(zip(found[::2], found[1::2], strict=True))


def as_pattern(shown):
    """Return a pattern in which … stands for any text, however lines are broken."""
    return r"\s+".join(".*?".join(map(re.escape, word.split("…"))) for word in shown.split())


def run(command, folder):
    """Run a command of a page, and return its exit code and what it printed."""
    tool, *arguments = shlex.split(command)
    if tool == "python":
        with redirect_stdout(io.StringIO()) as printed:
            runpy.run_path(str(folder / arguments[0]), run_name="__main__")
        return 0, printed.getvalue()
    if tool == "sh":
        return run_script(arguments, folder)
    assert tool == "plumdp"
    ended = plumdp(*arguments)
    return ended.code, ended.out + ended.err


def run_script(arguments, folder):
    """Run a script with a plumdp that records what it is asked, and then that in this process, to the first failure."""
    tool, record = folder / "bin" / "plumdp", folder / "commands"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(RECORD)
    tool.chmod(0o755)
    record.write_text("")
    subprocess.run(["sh", *arguments], check=True, env=os.environ | {"PATH": f"{tool.parent}:{os.environ['PATH']}"})
    printed, code = "", 0
    for line in record.read_text().splitlines():
        code, out, err = plumdp(*line.split("\037")[:-1])
        printed += out + err
        if code:
            break
    return code, printed


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_prints_what_the_page_shows(page, tmp_path, monkeypatch, blank_pictures):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    code = 0
    text = text_of(page)
    for block in BLOCK.finditer(text):
        for name, content in FILE.findall(text[: block.start()]):
            (tmp_path / name).write_text(content, encoding="utf-8")
        for command, shown in steps(block[1]):
            if command == "echo $?":
                assert shown.strip() == str(code)
                continue
            code, printed = run(command, tmp_path)
            assert re.fullmatch(as_pattern(shown), printed.strip(), re.DOTALL), f"{command}\n{printed}"


@pytest.mark.slow
def test_the_readme_says_what_its_example_saves_and_what_proof_costs(tmp_path, monkeypatch):
    """In truth, costs are those of twelve weeks, backwards from the last one."""
    monkeypatch.chdir(tmp_path)
    text = text_of("../README.md")
    (tmp_path / "pump.py").write_text(dict(FILE.findall(text))["pump.py"], encoding="utf-8")
    printed = [run(command, tmp_path)[1] for command, _ in steps("".join(BLOCK.findall(text)))[:2]][1]
    found = json.loads((tmp_path / "result" / "certificate.json").read_text(encoding="utf-8"))
    least, most = sorted(-end for end in found["comparison"]["difference"])
    costs = {}
    for serviced in (0.5, 1):
        good = worn = failed = 0
        for _ in range(12):
            risky = 0.25 * failed + 0.75 * worn
            good, worn, failed = 0.15 * worn + 0.85 * good, serviced * (120 + good) + (1 - serviced) * risky, 900 + good
        costs[serviced] = good
    assert least <= costs[0.5] - costs[1] <= most
    said = f"saves {int(least)} to {int(most) + 1} € a quarter; in truth, which the simulation knows, it is "
    assert f"{said}{costs[0.5] - costs[1]:.0f} €" in text
    low, high = map(int, re.search(r"not certified\s+(\d+)\s+to\s+(\d+)", printed).groups())
    wider = (found["upper"] - found["lower"]) / (found["approximate"][1] - found["approximate"][0])
    assert f"{wider:.1f} times as wide as the usual normal interval" in text
    assert f"that on the saving {(most - least) / (high - low):.1f} times" in text


@pytest.mark.parametrize("page", PAGES)
def test_a_job_takes_at_most_thirty_commands_of_plumdp_and_python(page):
    commands = [command for block in BLOCK.findall(text_of(page)) for command, _ in steps(block)]
    assert len(commands) <= 30
    assert {shlex.split(command)[0] for command in commands} <= {"plumdp", "python", "sh", "echo"}


def test_files_of_pipelines_are_what_github_and_airflow_read():
    """A workflow is YAML whose steps use or run something; a file for Airflow runs the script that the page tests."""
    files = dict(FILE.findall(text_of("howto/automate.md")))
    workflow = yaml.safe_load(files["gate.yml"])
    assert {"name", True, "jobs"} == workflow.keys()  # on is a truth in YAML 1.1
    assert all(("uses" in step) != ("run" in step) for step in workflow["jobs"]["gate"]["steps"])
    assert any("sh gate.sh" in step.get("run", "") for step in workflow["jobs"]["gate"]["steps"])
    calls = [node for node in ast.walk(ast.parse(files["gate_dag.py"])) if isinstance(node, ast.keyword)]
    told = {node.arg: node.value.value for node in calls if isinstance(node.value, ast.Constant)}
    assert (told["bash_command"].split(), told["skip_on_exit_code"]) == (["sh", "gate.sh"], 4)


def test_the_page_has_the_table_of_exit_codes():
    for code, words in EXIT_CODES:
        assert f"| {code} | {words} |\n" in text_of("howto/cli.md")


def test_the_page_names_every_command():
    from plumdp.cli import COMMANDS

    assert [name for name in COMMANDS if f"`{name}`" not in text_of("howto/cli.md")] == []
