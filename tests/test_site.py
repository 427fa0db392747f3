"""The documentation as it is built: every page in a real browser, light and dark, wide and narrow, opened as files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import s2ac

ROOT = Path(__file__).parent.parent
LOADED = "document.readyState === 'complete' && document.documentElement.classList.contains('js')"

# What is wrong with a page, as sentences: what is wider than the window and cannot be scrolled, pictures and formulas
# without a size, and formulas that were not converted.
WRONG = r"""(() => {
  const said = [], room = document.documentElement.clientWidth;
  const scrolls = (e) => e && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  if (document.documentElement.scrollWidth > room) said.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const e of document.querySelectorAll("article :is(p, li, pre, code, table, img, math, h1, h2, h3, h4)")) {
    const box = e.getBoundingClientRect();
    if (box.right > room + 1 && !scrolls(e)) said.push(`cut off: ${e.tagName} ${e.textContent.slice(0, 60)}`);
  }
  for (const e of document.querySelectorAll("article pre > code"))
    if (e.scrollWidth > e.clientWidth + 1 && !scrolls(e)) said.push(`cut-off code: ${e.textContent.slice(0, 60)}`);
  for (const e of document.querySelectorAll("article img")) if (!e.naturalWidth) said.push(`no picture: ${e.src}`);
  for (const e of document.querySelectorAll("article math")) {
    const box = e.getBoundingClientRect();
    if (!(box.width > 4 && box.height > 4) || e.querySelector("merror")) said.push(`no formula: ${e.textContent}`);
  }
  const text = document.querySelector("article").cloneNode(true);
  text.querySelectorAll("code, pre").forEach((e) => e.remove());
  const raw = text.textContent.match(/\$|\\[a-zA-Z(\[_]+/g);
  if (raw) said.push(`not a formula yet: ${raw}`);
  for (const e of text.querySelectorAll("p, li, td")) {
    const marks = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join("");
    if (/\n *(- |\* |\d+\. |#+ |\|)|\*\*/.test(marks)) said.push(`Markdown left as it was: ${marks.slice(0, 60)}`);
  }
  for (const e of text.querySelectorAll("em"))
    if (e.textContent.length > 60) said.push(`a star taken for emphasis: ${e.textContent.slice(0, 60)}`);
  if (text.textContent.includes("<!--")) said.push("a mark is left");
  return said;
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(made)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return made


def pages(site):
    return sorted(path for path in site.rglob("*.html") if path.name != "404.html")  # that one needs a server


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_whole(site, browser, scheme, width):
    browser.show(width, scheme)
    wrong, shades = {}, set()
    for page in pages(site):
        browser.open(page.as_uri(), LOADED)
        said = browser.value(WRONG) + browser.complaints()
        if said:
            wrong[page.relative_to(site).as_posix()] = said
        shades.add(browser.value("document.body.dataset.mdColorScheme"))
    assert len(pages(site)) >= 30
    assert wrong == {}
    assert shades == {{"light": "default", "dark": "slate"}[scheme]}


@pytest.mark.slow
def test_formulas_are_drawn_in_the_font_that_comes_along(site, browser):
    browser.show(1200, "light")
    browser.open((site / "algorithms" / "s2ac.html").as_uri(), LOADED)
    assert browser.value("document.querySelectorAll('article div.formula math').length") >= 5
    browser.wait("document.fonts.check('16px Formulas')")
    tall = "Math.max(...[...document.querySelectorAll('div.formula math')].map(m => m.getBoundingClientRect().height))"
    assert browser.value(tall) > 30  # a fraction is higher than a line


@pytest.mark.slow
def test_the_search_works_without_a_server(site, browser):
    browser.show(1200, "light")
    browser.open((site / "index.html").as_uri(), LOADED)
    browser.click("[data-md-component=search-query]")
    browser.wait("document.querySelector('[data-md-toggle=search]').checked")
    browser.call("Input.insertText", text="references")
    browser.key("Shift")  # the search listens to keys
    browser.wait("document.querySelectorAll('.md-search-result__item').length > 2")
    assert "algorithms/s2ac.html" in browser.value(
        "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href).join()"
    )
    assert browser.complaints() == []


@pytest.mark.slow
def test_the_button_changes_the_theme(site, browser):
    browser.show(1200, "light")
    browser.open((site / "index.html").as_uri(), LOADED)
    before = browser.value("getComputedStyle(document.body).backgroundColor")
    for _ in range(2):  # from the system's to light, and to dark
        browser.value("[...document.querySelectorAll('.md-option + label')].find(l => !l.hidden).click()")
    assert browser.value("document.body.dataset.mdColorScheme") == "slate"
    assert browser.value("getComputedStyle(document.body).backgroundColor") != before
    browser.value("localStorage.clear()")


def test_every_public_name_is_in_the_reference():
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    shown = set(re.findall(r"^::: s2ac[\w.]*\.(\w+)$", text, re.MULTILINE))
    assert shown >= set(s2ac.__all__) - {"__version__"}
