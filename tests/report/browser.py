"""What a reader of the report sees and does, in Chromium; tests/report/run.sh starts it."""

import json
import os
import re
import sys
import time

from playwright.sync_api import sync_playwright

OUT = os.environ["OUT"]
SIZES = {"wide": (1400, 1000), "usual": (1000, 900), "narrow": (390, 844)}
WIDE = SIZES["wide"]
failures = 0


def check(what, good, seen=""):
    global failures
    failures += not good
    print(f"ok: {what}" if good else f"FAILED: {what}: {seen}", flush=True)


def equal(what, seen, wanted):
    check(what, seen == wanted, f"{seen!r}, not {wanted!r}")


class Page:
    """A page, and all that it tried: requests, dialogs, errors."""

    def __init__(self, browser, name, size=WIDE, **more):
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, **more
        )
        self.page = self.context.new_page()
        self.tried = []
        for event in ("request", "dialog", "pageerror", "console", "popup", "download"):
            self.page.on(event, lambda what, event=event: self.note(event, what))
        self.page.goto(f"file://{OUT}/{name}")

    def note(self, event, what):
        if event == "dialog":
            what.dismiss()
        text = getattr(what, "url", None) or getattr(what, "text", None) or str(what)
        if event != "request" or not text.startswith(f"file://{OUT}/"):
            self.tried.append(f"{event} {text}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def rows(self):
        return self.page.locator("#list summary")

    def count(self):
        return int(self.page.locator("#count").inner_text().split(" ")[0].replace(",", ""))


def with_records(name, records):
    """A page of these records."""
    with open(f"{OUT}/{name}.jsonl", "w", encoding="utf-8") as log:
        for second, record in enumerate(records):
            usual = {
                "time": f"2026-01-31T12:00:{second % 60:02}.000Z", "host": "h", "pid": 1,
                "agent_id": "a", "tool": "run", "work_dir": "/", "allowed": True,
                "outcome": "exited", "exit_code": 0, "duration_ms": 5, "cpu_ms": 1,
            }
            log.write(json.dumps({**usual, **record}) + "\n")
    command = f"'{os.environ['CODEEXEC_MCP']}' --report '{OUT}/{name}.jsonl'"
    assert os.system(f"{command} --output '{OUT}/{name}.html' > '{OUT}/{name}.log'") == 0
    return f"{name}.html"


def read_records():
    with open(f"{OUT}/sample.jsonl", encoding="utf-8") as log:
        return [json.loads(line) for line in log]


def try_filters(browser):
    records = read_records()
    with Page(browser, "sample.html") as seen:
        page = seen.page
        equal("all commands are counted", seen.count(), 600)
        equal("a page of the list has 100", seen.rows().count(), 100)
        wanted = sum(r["agent_id"] == "coder-1" for r in records)
        page.select_option("#who", "coder-1")
        equal("the list has one agent's commands", seen.count(), wanted)
        page.select_option("#rule", "sudo")
        wanted = sum(r["agent_id"] == "coder-1" and r.get("rule") == "sudo" for r in records)
        equal("and those that one rule refused", seen.count(), wanted)
        equal("each says so", page.locator("#list .badge.refused").count(), wanted)
        page.click("#reset")
        page.click("#totals .failed")
        wanted = sum(r["outcome"] == "exited" and r["exit_code"] != 0 for r in records)
        equal("a total is a filter", seen.count(), wanted)
        page.click("#reset")
        page.click(".lane >> nth=1 >> button")
        check("a lane's name is a filter", 0 < seen.count() < 600, seen.count())
        page.click("#reset")
        page.fill("#text", "NPM INSTALL")
        wanted = sum("npm install" in r["command"] for r in records)
        equal("a search finds what commands say", seen.count(), wanted)
        page.click("#reset")
        equal("all can be shown again", seen.count(), 600)
        page.click("text=Refused, by rule >> xpath=.. >> button >> nth=0")
        check("a bar is a filter", 0 < seen.count() < 60, seen.count())
        equal("the rule stands in its menu", page.input_value("#rule") != "", True)
        page.click("#reset")
        page.evaluate("scrollTo(0, 0)")
        box = page.locator("canvas").first.bounding_box()
        page.mouse.move(box["x"] + 10, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 10)
        page.mouse.up()
        check("a span of the timeline can be chosen", 0 < seen.count() < 600, seen.count())
        page.click("#whole")
        equal("and left again", seen.count(), 600)
        page.click("#in")
        check("the timeline zooms by a button", 0 < seen.count() < 600, seen.count())
        page.click("#out")
        page.mouse.click(box["x"] + 15, box["y"] + 15)
        equal("a mark of the timeline leads to its command", page.locator("details[open]").count(),
              1)
        equal("nothing was tried besides", seen.tried, [])


def try_keyboard(browser):
    with Page(browser, "sample.html") as seen:
        page = seen.page
        focused = "document.activeElement"
        page.keyboard.press("/")
        equal("/ leads to the search", page.evaluate(f"{focused}.id"), "text")
        page.keyboard.type("make/x")
        equal("where / is a letter", page.input_value("#text"), "make/x")
        page.keyboard.press("Escape")
        equal("Escape empties it", seen.count(), 600)
        place = f"[...document.querySelectorAll('summary')].indexOf({focused})"
        seen.rows().first.focus()
        for key, at in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", 99),
                        ("Home", 0)):
            page.keyboard.press(key)
            equal(f"{key} moves to row {at}", page.evaluate(place), at)
        page.keyboard.press("Enter")
        page.locator("details[open] .detail").wait_for()
        equal("Enter opens", page.locator("details[open] .detail").count(), 1)
        page.keyboard.press("Enter")
        equal("and closes", page.locator("details[open]").count(), 0)
        page.keyboard.press("ArrowRight")
        equal("an arrow turns the page", page.locator("#page").inner_text(), "2 of 6")
        page.keyboard.press("ArrowLeft")
        equal("and back", page.locator("#page").inner_text(), "1 of 6")
        page.reload()
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(f"{focused}.id || {focused}.tagName"))
        missing = {"text", "who", "kind", "rule", "reset", "in", "earlier", "SUMMARY"} - reached
        equal("Tab reaches all controls", missing, set())
        unnamed = page.evaluate("""[...document.querySelectorAll('button, input, select, canvas')]
            .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length""")
        equal("each control has a name", unnamed, 0)


HOSTILE = [
    "</script><script>alert(1)</script>", "<!-- <script>", "]]>", "${alert(5)}", "`+alert(6)+`",
    "<img src=http://127.0.0.1:9/x onerror=alert(2)>", "\" onmouseover=\"alert(3)",
    "' autofocus onfocus='alert(4)'",
    "\u2028\u2029", "javascript:alert(7)", "<svg onload=alert(8)>", "&lt;b&gt;", "\\u003cb>",
    "\ud800",
]
MEMBERS = ["command", "agent_id", "host", "rule", "message", "stdout", "stderr", "code", "work_dir",
           "tool", "outcome", "client", "session_id", "signal", "exit_code", "container", "place",
           "new_member", "time2", "sandbox"]


def try_hostile(browser):
    records = [{name: text} for text in HOSTILE for name in MEMBERS]
    records += [{text: text} for text in HOSTILE]
    ends = [[text, {"name": text, "port": text, "verdict": text}, {"omitted": text}]
            for text in HOSTILE]
    records += [{"changed_files": end[:1], "connections": end} for end in ends]
    records += [{"__proto__": {"polluted": 1}}, {"constructor": 1, "toString": 2, "at": 3},
                {"duration_ms": "x"}, {"duration_ms": -5}, {"duration_ms": 1e300},
                {"connections": 7, "changed_files": {"a": 1}}, {"exit_code": None},
                {"command": ["a"]}, {"agent_id": 5}, {"stdout_bytes": "9"}, {"rule_begin": -1},
                {"__proto__": 5}, {"valueOf": 5}, {"time": "noon"}, {"time": "9999-99-99"}]
    with Page(browser, with_records("hostile", records)) as seen:
        page = seen.page
        equal("all hostile records are shown", seen.count(), len(records))
        for _ in range(4):
            for row in seen.rows().all():
                row.click()
            # The page hears of an opened row in a task of its own.
            page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            equal("each of a page opens", page.locator("#list .detail").count(),
                  seen.rows().count())
            if page.locator("#after").is_enabled():
                page.click("#after")
        page.fill("#text", "alert")
        page.mouse.move(700, 400)
        made = page.evaluate(
            "document.querySelectorAll('main :is(img, svg, iframe, b, script, a, object)').length"
            " - document.querySelectorAll('#totals b').length")
        equal("none of them makes an element", made, 0)
        equal("no dialog, request, error or message", seen.tried, [])
        equal("and no prototype", page.evaluate("({}).polluted === undefined"), True)

    shown = "a\u202eb\u200bc\u0007d\u2028e\u009bf\U000e0041g\r\nh\ti"
    with Page(browser, with_records("odd", [{"command": shown}])) as seen:
        wanted = ["U+202E", "U+200B", "U+0007", "U+2028", "U+009B", "U+E0041", "U+000D"]
        equal("what is not seen is made visible",
              seen.page.locator("summary .odd").all_inner_texts(), wanted)
        seen.rows().first.click()
        equal("in the whole command, too",
              seen.page.locator("#list pre").first.inner_text(),
              "aU+202EbU+200BcU+0007dU+2028eU+009BfU+E0041gU+000D\nh\ti")
    long = with_records("long", [{"command": "a" * 8000} for _ in range(800)])
    with Page(browser, long) as seen:
        equal("commands of one long word take no long time", seen.count(), 800)
    net = [{"name": "a.example", "port": 443, "verdict": "refused", "reason": "list"},
           {"name": "b.example", "port": 80, "verdict": "allowed"}, {"omitted": 3}]
    with Page(browser, with_records("net", [{"connections": net}])) as seen:
        bars = seen.page.locator("[aria-label=Connections] .plot span:first-child")
        equal("connections are counted by their end and verdict", bars.all_inner_texts(),
              ["a.example:443 (refused)", "b.example:80", "3 more that are not in the log"])
    rule = {"command": "caf\u00e9 && sudo ls; true", "outcome": "refused", "rule": "sudo",
            "rule_begin": 9, "rule_end": 16}
    with Page(browser, with_records("rule", [rule])) as seen:
        seen.rows().first.click()
        equal("what a rule objects to is marked", seen.page.locator("mark").inner_text(), "sudo ls")
    with Page(browser, with_records("none", [{"outcome": 7}])) as seen:
        check("a log without records has a page", "no records" in seen.page.inner_text("#span"))
        equal("without errors", seen.tried, [])


CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => (v /= 255) <= .04045 ? v / 12.92
    : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const worst = [];
  for (const node of document.querySelectorAll('body *')) {
    if (![...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(node);
    if (!node.checkVisibility() || node.disabled || node.closest('script, option, :disabled'))
      continue;
    let under = node, ground;
    do { ground = rgb(getComputedStyle(under).backgroundColor); under = under.parentElement; }
    while (under && ground[3] === 0);
    const a = light(rgb(style.color)), b = light(ground);
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) worst.push([node.tagName, node.className, ratio.toFixed(2)].join(' '));
  }
  return worst;
}"""


def try_looks(browser):
    for scheme in ("light", "dark"):
        for name, size in SIZES.items():
            with Page(browser, "sample.html", size, color_scheme=scheme) as seen:
                page = seen.page
                page.screenshot(path=f"{OUT}/{name}-{scheme}.png", full_page=True)
                seen.rows().nth(8).click()
                seen.rows().nth(8).scroll_into_view_if_needed()
                page.screenshot(path=f"{OUT}/{name}-{scheme}-open.png")
                over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                check(f"{name}, {scheme}: nothing is wider than the page", over <= 0, over)
                equal(f"{name}, {scheme}: texts stand out (WCAG AA)", page.evaluate(CONTRAST), [])
        ground = [int(n) for n in re.findall(r"\d+", background(browser, scheme))]
        check(f"{scheme} is {scheme}", (sum(ground) > 600) == (scheme == "light"), ground)
    with Page(browser, "sample.html", color_scheme="dark") as seen:
        seen.page.emulate_media(media="print")
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        equal("paper has all commands", seen.rows().count(), 600)
        equal("paper is white", seen.page.evaluate(
            "getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        equal("and has no controls", seen.page.locator("#filters").is_visible(), False)
        seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
        equal("then the list is as before", seen.rows().count(), 100)
        seen.page.pdf(path=f"{OUT}/sample.pdf")


def background(browser, scheme):
    with Page(browser, "sample.html", color_scheme=scheme) as seen:
        return seen.page.evaluate("getComputedStyle(document.body).backgroundColor")


def try_large(browser):
    with Page(browser, "large.html") as seen:
        equal("10,000 commands are all there", seen.count(), 10000)
        seen.page.fill("#text", "pytest")
        check("and can be searched", 0 < seen.count() < 10000, seen.count())
    size = os.path.getsize(f"{OUT}/large.html")
    check("their page is below 8 MB", size < 8e6, size)


def bench(browser):
    times = []
    for _ in range(5):
        start = time.monotonic()
        with Page(browser, "large.html") as seen:
            seen.rows().first.wait_for()
            times.append(time.monotonic() - start)
    size = os.path.getsize(f"{OUT}/large.html")
    print(f"10,000 commands, {size / 1e6:.1f} MB: opened in {min(times):.2f} s, "
          f"{max(times):.2f} s at most")


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CHROMIUM"],
            args=["--no-sandbox", "--disable-gpu"],  # its sandbox does not start for root
        )
        if "--bench" in sys.argv:
            return bench(browser)
        for step in (try_filters, try_keyboard, try_hostile, try_looks, try_large):
            step(browser)
        browser.close()
    return failures > 0


sys.exit(main())
