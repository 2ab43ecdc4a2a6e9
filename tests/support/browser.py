"""Pages in a real browser without a network: what overflows, what is requested, and what a search finds."""

import base64
import json
import os
import re
import shutil
import subprocess
from html import unescape

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
