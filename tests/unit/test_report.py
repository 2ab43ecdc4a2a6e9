"""The report: one page that needs nothing else, says what is claimed and no more, and takes no text for markup."""

import base64
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime
from html import unescape
from html.parser import HTMLParser

import explained as betting
import numpy as np
import pandas
import pytest
from row_models import listed
from shorthand import altered, check_model

import plumdp as pl
from plumdp.base.vocabulary import Status
from plumdp.data.report import KINDS as KINDS_OF_ROWS
from plumdp.data.report import IngestionReport
from plumdp.reporting.page import render
from plumdp.reporting.read import explain_result
from plumdp.result.certificate import fingerprint_of
from plumdp.result.findings import Findings
from plumdp.result.printing import outward, plain_bounds

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY_NOT = "there is no chromium on the PATH: a page cannot be looked at as a browser shows it"

_WRAPPER = """<!doctype html><meta charset="utf-8"><body style="margin:0"><pre id="found">nothing</pre><script>
const page = new TextDecoder().decode(Uint8Array.from(atob("%s"), (c) => c.charCodeAt(0)));
const widths = %s, search = %s, found = {};
const shown = (box) => box.width > 0 && box.height > 0;
const look = (frame, width) => {
  const inside = frame.contentDocument, root = inside.documentElement, faults = [];
  if (root.scrollWidth > width) faults.push(`the page is ${root.scrollWidth} wide`);
  for (const each of inside.querySelectorAll("body *")) {
    const box = each.getBoundingClientRect(), name = `${each.tagName} ${each.textContent.trim().slice(0, 40)}`;
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !shown(box) || each.tagName === "SCRIPT") continue;
    const place = each.closest("svg") ?? each.closest(".scroll > *") ?? root;
    const limit = place.getBoundingClientRect();
    if (box.right > limit.right + 1 || box.left < limit.left - 1) faults.push(`${name} leaves its place`);
    if (!each.closest("svg") && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline")
      faults.push(`${name} is cut`);
  }
  return faults;
};
const frameOf = (width) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.style = `border:0;width:${width}px;height:900px`;
  frame.onload = () => setTimeout(() => done(frame), 50);
  frame.srcdoc = page;
  document.body.append(frame);
});
(async () => {
  for (const width of widths) {
    const frame = await frameOf(width), view = frame.contentWindow, inside = frame.contentDocument;
    for (const folded of inside.querySelectorAll("details")) folded.open = true;
    const result = { faults: look(frame, width), searched: [] };
    result.requests = view.performance.getEntriesByType("resource").map((entry) => entry.name);
    const input = inside.querySelector('input[data-table="policy-table"]');
    for (const text of input ? search : []) {
      input.value = text;
      input.dispatchEvent(new view.Event("input"));
      result.searched.push([...inside.querySelectorAll("#policy-table tbody tr")].filter((row) => !row.hidden).length);
    }
    found[width] = result;
  }
  document.getElementById("found").textContent = JSON.stringify(found);
})();
</script>"""


def look_at(page: str, folder, *, widths=(390, 1280), search=()) -> dict:
    """Return for each width the faults, the requests, and how many rows of the policy each search shows."""
    assert CHROMIUM is not None
    coded = base64.b64encode(page.encode()).decode()
    file = folder / "wrapper.html"
    file.write_text(_WRAPPER % (coded, json.dumps(list(widths)), json.dumps(list(search))), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={folder / 'profile'}"]
    command += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1400,1000", "--virtual-time-budget=20000"]
    shown = subprocess.run([*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
    told = re.search(r'<pre id="found">(.*?)</pre>', shown.stdout, flags=re.DOTALL)
    assert told is not None, shown.stderr[-2000:]
    return {int(width): result for width, result in json.loads(unescape(told.group(1))).items()}


HOSTILE = "<script>alert('x')</script>&\"$x^2$"


@pytest.fixture(scope="module")
def problem():
    return betting.STUDY.model, betting.COUNTS, betting.STUDY.objective


def explained(model, counts, objective, **options):
    """Return a certificate and its findings."""
    learned = pl.learn(model, counts, objectives=[objective], **options)
    certificate = pl.conclude(learned, objective)
    return certificate, pl.explain(learned, certificate)


@pytest.fixture(scope="module")
def certified_and_found():
    return betting.certificate(), betting.findings()


@pytest.fixture(scope="module")
def certified(certified_and_found):
    return certified_and_found[0]


def hostile_problem():
    """Return a model whose action, state and label are hostile texts, with data and a question."""
    (p,) = pl.parameters("p")

    rows = {
        HOSTILE: {HOSTILE: [(p, "goal"), (1 - p, HOSTILE)], "wait": [(1, HOSTILE)]},
        "goal": {HOSTILE: [(1, "goal")]},
    }
    model = listed(rows, start=HOSTILE)
    counts = pl.simulate(model, {"p": "1/3"}, 200, rng=1, max_steps=5)
    return model, counts, pl.parse_property('Pmax=? [ F<=3 at="goal" ]', model)


@pytest.fixture(scope="module")
def hostile_and_found():
    certificate, findings = explained(*hostile_problem())
    hostile = altered(certificate, reason=HOSTILE, provenance={HOSTILE: HOSTILE}, objective=HOSTILE)
    return hostile, replace(findings, about=fingerprint_of(hostile))


@pytest.fixture(scope="module")
def hopper():
    """Return a certificate and findings of a model with one action in each state, from a log."""
    (p,) = pl.parameters("p")

    model = listed({"here": {"hop": [(p, "gone"), (1 - p, "here")]}, "gone": {"hop": [(1, "gone")]}}, start="here")
    log = pandas.DataFrame({"at": ["here"] * 90, "next_at": ["here", "here", "gone"] * 30})
    return explained(model, pl.read_log(model, log), 'P=? [ F<=3 at="gone" ]')


@pytest.fixture(scope="module")
def contradicting():
    """Two actions of one parameter that behave in opposite ways: no parameter explains both."""
    (p,) = pl.parameters("p")

    model = listed({0: {name: [(p, 1), (1 - p, 2)] for name in ("one", "other")}})
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:4] = 900, 100, 100, 900
    return model, pl.TransitionCounts(model.graph, counts, "adaptive"), "Pmax=? [ F at=1 ]"


@pytest.fixture(scope="module")
def contradicted_and_found(contradicting):
    return explained(*contradicting)


@pytest.fixture(scope="module")
def contradicted(contradicted_and_found):
    return contradicted_and_found[0]


@pytest.fixture(scope="module")
def pages(certified_and_found, hostile_and_found, contradicted_and_found, problem):
    shown = {
        "certified": certified_and_found,
        "hostile": hostile_and_found,
        "contradicted": contradicted_and_found,
    }
    return {name: render(certificate, findings) for name, (certificate, findings) in shown.items()}


class Page(HTMLParser):
    """Collects what a page is made of, and checks that elements are closed in the order they were opened."""

    VOID = ("meta", "input", "br", "hr", "img", "link")

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


KINDS = ("certified", "hostile", "contradicted")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_on_the_page_comes_from_elsewhere(pages, kind):
    page = Page(pages[kind])
    for tag, attributes, _ in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img", "image", "form", "audio", "video")
        for name, value in attributes.items():
            if name in ("src", "srcset", "action", "data", "poster"):
                raise AssertionError(f"{tag} has {name}={value}")
            if name in ("href", "xlink:href"):
                assert value.startswith("#"), f"{tag} leads to {value}"
            assert not name.startswith("on"), f"{tag} runs {name}"
    css = "".join(page.texts["style"]) + "".join(str(attributes.get("style")) for _, attributes, _ in page.elements)
    assert "@import" not in css
    assert all(target.startswith("#") for target in re.findall(r"url\(['\"]?([^)]*)", css))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_forbids_requests_and_all_scripts_but_one(pages, kind):
    page = Page(pages[kind])
    rules = [a["content"] for tag, a, _ in page.elements if tag == "meta" and a.get("http-equiv")]
    assert len(rules) == 1
    assert rules[0].startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "http" not in rules[0]
    assert [tag for tag, _, _ in page.elements].count("script") == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ids_occur_once_links_lead_to_them_and_tables_have_headers(pages, kind):
    page = Page(pages[kind])
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [a.get("href") or a.get("xlink:href") for _, a, _ in page.elements if "href" in a or "xlink:href" in a]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    n_tables = sum(tag == "table" for tag, _, _ in page.elements)
    assert n_tables == sum(tag == "thead" for tag, _, _ in page.elements) >= 3
    assert all("scope" in attributes for tag, attributes, _ in page.elements if tag == "th")


@pytest.mark.slow
def test_hostile_texts_are_shown_as_they_are(pages):
    text = pages["hostile"]
    assert "<script>alert" not in text
    page = Page(text)
    for tag in ("td", "li"):  # the policy and provenance, the question and the reason
        assert HOSTILE.lower() in "".join(page.texts[tag]).lower(), tag


@pytest.mark.slow
def test_the_page_says_what_the_certificate_says(pages, certified_and_found):
    certified, findings = certified_and_found
    page = Page(pages["certified"])
    assert page.texts["p"][0].startswith("The expected “money” until the system reaches “end” · ")
    said = "".join(page.texts["li"])
    assert certified.headline.replace(" %", "\N{NO-BREAK SPACE}%") in said  # with all digits, among the methods
    assert all(assumption in said for assumption in certified.rests_on.assumptions)
    rows = [place for tag, _, place in page.elements if tag == "tr"]
    assert len(rows) > len(certified.policy)
    assert 'class="certified"' in pages["certified"]
    for rung in findings.ladder:
        assert f"<td>{rung.relaxation}</td>" in pages["certified"]


@pytest.mark.slow
def test_the_first_screen_says_in_plain_words_what_is_claimed_and_what_would_make_it_false(certified_and_found):
    certified, findings = certified_and_found
    text = render(certified, findings, title="Five bets", system="the <b>game</b>", author="A. Gambler")
    page = Page(text)
    day = datetime.fromisoformat(certified.rests_on.provenance["date"])
    assert f"Five bets · the <b>game</b> · A. Gambler · {day.day} {day:%B %Y}" in page.texts["p"]
    (claim,) = page.texts["h1"]
    low, high = plain_bounds(certified.lower, certified.upper, is_probability=False)
    value = "the expected “money” until the <b>game</b> reaches “end”"
    assert claim.replace("\N{NO-BREAK SPACE}", " ") == (
        f"With a confidence of 99.9 %, {value} is between {low} and {high}, under the recommended policy."
    )
    assert text.index("What would make it false") < text.index(certified.rests_on.assumptions[0]) < text.index("<nav")
    assert "whenever the data stopped, and 1 means no evidence against the model" in text


@pytest.mark.slow
def test_methods_are_folded_at_the_end_and_its_words_are_explained(pages):
    page = Page(pages["certified"])
    folded = [attributes["id"] for tag, attributes, _ in page.elements if tag == "details"]
    assert folded == ["how", "ladder", "region", "expressions", "provenance"]
    ids = [attributes["id"] for tag, attributes, place in page.elements if tag == "section" and "id" in attributes]
    assert ids == [
        *("claim", "rests", "assumptions", "policy", "data", "test", "parameters", "limits", "glossary", "methods")
    ]
    assert page.texts["dt"] == ["policy", "value", "confidence", "parameter", "region", "not certified", "model test"]
    assert "more often than expected" in pages["certified"]  # the legend of residuals


def test_a_threshold_is_answered_first_and_in_plain_numbers(problem):
    learned = pl.learn(*problem[:2], objectives=[problem[2]])
    certificate = pl.decide(learned, 'R{"money"}>=10 [ F "end" ]').answered
    text = render(certificate, Findings(fingerprint_of(certificate))).replace("\N{NO-BREAK SPACE}", " ")
    asked = "Is there a policy for which the expected “money” until the system reaches “end” is at least 10?"
    (answer,) = Page(text).texts["h1"]
    assert answer.startswith("Yes (confidence 99.9 %): the recommended policy has at least 11.1; 10 was asked.")
    assert text.index("Certified") < text.index(asked)
    assert certificate.decided in " ".join(Page(text).texts["li"]).replace("\N{NO-BREAK SPACE}", " ")
    weaker = altered(certificate, confidence=0.95)
    explained = render(weaker, Findings(fingerprint_of(weaker))).replace("\N{NO-BREAK SPACE}", " ")
    assert "a confidence of 95 %, each from new data, on average at most 50 in 1,000 would be false" in explained


@pytest.mark.slow
def test_other_statuses_look_different_and_claim_nothing(pages, contradicted):
    assert contradicted.status == Status.REJECTED
    assert '<body class="contradicted">' in pages["contradicted"]
    assert "do not rely on this policy" in pages["contradicted"]
    assert "not a claim about the model" in pages["contradicted"]
    assert "What each relaxation certifies" not in pages["contradicted"]
    for claim in ("The claim may be false if", "relaxation certifies", "with the confidence of the claim"):
        assert claim in pages["certified"]


@pytest.mark.slow
def test_no_bound_is_shown_if_the_data_show_what_cannot_happen(problem, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("money,state_step,action,next_money,next_step\n10,0,bet1,11,1\n10,0,bet1,49,1\n")
    counts = pl.read_log(problem[0], log, on_unmatched="report")
    certificate, findings = explained(problem[0], counts, problem[2])
    text = render(certificate, findings)
    assert not certificate.claim.claims_bounds
    assert 'class="bounds"' not in text
    assert "infinity" not in text
    assert "1 log row shows what the model excludes. Nothing is claimed." in text
    assert "(money=49, step=1)" in text
    assert Page(text)


@pytest.mark.slow
def test_a_model_without_choices_is_told_without_policies(hopper):
    certificate, findings = hopper
    assert certificate.headline.startswith(
        "Certified: the probability that the system reaches a state with at = “gone” "
    )
    page = render(certificate, findings)
    assert not re.search(r"best policy|Wanted|What to do in each state|unmeasured confounding", page)
    assert "no step is missing because of its outcome" in page


def test_large_policies_are_cut_and_the_page_says_so(certified_and_found, monkeypatch):
    monkeypatch.setattr("plumdp.reporting.evidence._MOST_ROWS", 50)
    text = render(*certified_and_found)
    assert "Only the first 50 of 225 states are in this file; policy.csv has all." in text
    assert "the first 50 of 225" in text


@pytest.mark.night
@pytest.mark.parametrize("is_explained", [True, False])
def test_a_saved_result_has_the_same_report_with_and_without_findings(
    certified_and_found, problem, pages, tmp_path, is_explained
):
    certificate, findings = certified_and_found
    model, counts, _ = problem
    pl.write_result(certificate, tmp_path / "result", findings if is_explained else None, model=model, counts=counts)
    pl.write_report(*explain_result(tmp_path / "result"), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == pages["certified"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.html", "result"]


def test_a_report_needs_a_place_and_the_findings_of_its_certificate(certified_and_found, contradicted, tmp_path):
    certificate, findings = certified_and_found
    with pytest.raises(pl.DataError, match="is a folder; name a file in it"):
        pl.write_report(certificate, findings, tmp_path)
    with pytest.raises(pl.DataError, match=r"there is no folder .*missing; make it first"):
        pl.write_report(certificate, findings, tmp_path / "missing" / "x.html")
    for mixed_up in (contradicted, altered(certificate, lower=certificate.lower + 1e-9)):
        with pytest.raises(pl.DataError, match="these findings are about another certificate"):
            pl.write_report(mixed_up, findings, tmp_path / "x.html")
        with pytest.raises(pl.DataError, match="these findings are about another certificate"):
            pl.write_result(mixed_up, tmp_path / "result", findings)
    assert list(tmp_path.iterdir()) == []


def test_a_report_without_any_findings_shows_the_claim(certified):
    page = Page(render(certified, Findings(fingerprint_of(certified))))
    assert certified.headline.replace(" %", "\N{NO-BREAK SPACE}%") in page.texts["li"]


# Notebooks


def test_notebooks_show_the_claim_the_bounds_and_the_facts(certified):
    shown = Page(certified._repr_html_())
    assert shown.texts["b"] == [certified.headline, "what the error of 0.1 % is spent on"]
    (label,) = [attributes["aria-label"] for tag, attributes, _ in shown.elements if tag == "svg"]
    low, high = certified.claim.printed_bounds
    assert label == f"between {low} and {high}, estimate about {certified.beside.estimated_value:.6g}"
    page = certified.page()
    assumed = {text for label, text in page.facts if label == "assuming"}
    behind = [*(pair for pair in page.facts if pair[1] not in assumed), *page.details]
    facts = [text for pair in behind for text in pair if text]
    assert shown.texts["td"][: len(facts)] == facts
    assert assumed <= {*shown.texts["td"][len(facts) :]}
    assert {"relaxation", "confidence set", "width"} <= {*facts}
    assert len(certified._repr_html_()) < 10_000


def test_notebooks_draw_no_bounds_where_none_are_claimed(certified, contradicted):
    report = IngestionReport("transitions", dict.fromkeys(KINDS_OF_ROWS, 0) | {"impossible transition": 1}, {})
    refused = altered(
        certified, claims_bounds=False, data_quality=replace(certified.rests_on.data_quality, report=report)
    )
    assert "<svg" not in refused._repr_html_()
    assert "<svg" in contradicted._repr_html_()  # on the graph alone, as its headline says
    assert "Model rejected" in contradicted._repr_html_()


@pytest.mark.night
def test_everything_in_a_notebook_is_escaped_and_light(hostile_and_found):
    hostile, _ = hostile_and_found
    model, counts, objective = hostile_problem()
    learned = pl.learn(model, counts, objectives=[objective])
    advice = pl.advise(learned, objective)
    shown = {
        "certificate": hostile,
        "learned": learned,
        "advice": advice,
        "check": check_model(model, counts),
        "policy": hostile.policy,
    }
    for name, thing in shown.items():
        text = thing._repr_html_()
        assert "<script" not in text, name
        assert Page(text).elements, name
        assert len(text) < 50_000
    assert HOSTILE in "".join(Page(advice._repr_html_()).texts["td"])
    rows = Page(learned._repr_html_()).texts["td"]
    assert rows[rows.index("p") + 1].split(" to ")[0] == outward(float(learned.region.lower[0]), -1)


def test_what_was_learned_says_why_it_contradicts_the_model(contradicting):
    assert "rejected" in pl.learn(*contradicting[:2])._repr_html_()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
@pytest.mark.parametrize("kind", ["certified", "hostile", "contradicted"])
def test_in_a_browser_no_text_overflows_and_no_request_leaves(pages, certified, kind, tmp_path):
    found = look_at(pages[kind], tmp_path, search=["", "money=10", "step=0 money=10", "no such action"])
    for width, seen in found.items():
        assert seen["faults"] == [], width
        assert seen["requests"] == []
    if kind == "certified":
        n_tens = int((certified.policy.columns()["money"] == 10).sum())
        assert found[1280]["searched"] == [225, n_tens, 1, 0]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_the_browser_finds_planted_faults(pages, tmp_path):
    wide = (
        '<p style="width:5000px">wide</p><p style="width:40px;overflow:hidden;white-space:nowrap">cut cut cut cut</p>'
    )
    planted = pages["contradicted"].replace("<main>", f"<main>{wide}")
    faults = look_at(planted, tmp_path, widths=[390])[390]["faults"]
    assert any("the page is" in fault for fault in faults)
    assert any("cut cut" in fault and fault.endswith("is cut") for fault in faults)
