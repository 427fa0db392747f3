"""The page: nothing in a run can break it or get out of it, and it works in a real browser."""

import json
import os
import re

import pytest

from report_runs import HOSTILE, Outline, cloud_data, hostile_run, make_run, read
from s2ac.cli.main import main
from s2ac.report.data import collect
from s2ac.report.page import render
from s2ac.text import inert, printable, to_json


def test_hostile_text_is_inert_in_the_page(tmp_path):
    assert len(HOSTILE) >= 30
    data = collect(read(hostile_run(tmp_path / "run")), ["<b>" + "".join(HOSTILE)])
    page, harmless = render(data), render(collect(read(make_run(tmp_path / "plain"))))
    outline, plain = Outline(page), Outline(harmless)
    assert outline.elements == plain.elements  # not one element or attribute more
    assert len(outline.scripts) == 2
    assert outline.scripts[1] == plain.scripts[1]
    assert json.loads(outline.scripts[0]) == inert(data)
    assert page.isascii() or not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\u2028\u2029]", page)
    assert not re.search(r"[<>&\x00-\x1f]", outline.scripts[0].strip())
    assert len(page) < 2_000_000


def test_the_page_names_no_address_and_runs_only_its_own_code(tmp_path):
    page = render(collect(read(make_run(tmp_path / "run"))))
    addresses = set(re.findall(r"[a-z]+://[^\s\"'`]*", page)) - {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert not addresses
    policy = next(a["content"] for tag, a in Outline(page).elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in page


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert_in_the_terminal(text, tmp_path, capsys):
    shown = printable(text)
    assert shown.isprintable() or not re.search(
        r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]", shown
    )
    assert len(shown) < 40_000
    shown.encode()
    assert json.loads(to_json({text: text})) == {shown: shown}
    name = text.replace("/", "_").replace("\x00", "_")[:60]
    try:
        os.fsencode(name)
        missing = tmp_path / name
        assert main(["report", str(missing)]) == 2
    except (UnicodeEncodeError, SystemExit):
        return  # no file can have this name, or it reads as an option
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.strip("\n") == printable(error.strip("\n"))
    assert "not a run" in error


def test_page_in_chromium(browser, tmp_path):
    """It loads, charts have data, hover tells values, paging works by button and key, and the console stays silent."""
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(make_run(tmp_path / "run")), [cloud_data(2)])))
    browser.open(path.as_uri())
    charts = browser.value("[...document.querySelectorAll('[data-chart]')].map(c => [c.dataset.chart, "
                           "Math.max(...[...c.querySelectorAll('polyline')].map(p => +p.dataset.points))])")  # fmt: skip
    assert len(charts) >= 11
    assert dict(map(tuple, charts))["Return in training"] == 12
    assert all(points >= 3 for _, points in charts)
    assert browser.value("document.querySelectorAll('[data-chart=\"Return in training\"] polyline').length") == 4
    points = "document.querySelectorAll('[data-chart=\"Return in evaluation, rule sample\"] .mark').length"
    assert browser.value(points) == 3 * 4  # evaluations, of three seeds and their mean
    assert browser.value("[...document.querySelectorAll('h4')].map(h => h.textContent)") == [
        "Learning",
        "Health of the sampler",
    ]

    tip = "[data-chart='Return in training'] .tip"
    assert browser.value(f'document.querySelector("{tip}").hidden')
    browser.hover("[data-chart='Return in training'] svg", 0.99)
    browser.wait(f'!document.querySelector("{tip}").hidden')
    text = browser.value(f'document.querySelector("{tip}").innerText')
    for words in ("step 1,200", "seed 0", "120", "seed 1", "122", "mean of 3 seeds", "[117, 127]"):
        assert words in text.replace("\n", " "), text

    number = "document.getElementById('state-number').textContent"
    picture = "document.querySelector('.cloud').innerHTML"
    assert browser.value(number) == "state 1 of 3"
    assert browser.value("document.querySelector('[data-cells]').dataset.cells") == str(37**2)
    assert browser.value("document.querySelectorAll('.cloud .executed').length") == 64
    assert browser.value("document.querySelectorAll('.cloud .particle').length") == 64
    first = browser.value(picture)
    browser.click("#next")
    assert browser.value(number) == "state 2 of 3"
    second = browser.value(picture)
    browser.key("ArrowRight")
    assert browser.value(number) == "state 3 of 3"
    browser.key("ArrowLeft")
    browser.click("#previous")
    browser.hover("[data-cloud]", 0.3, 0.3)
    browser.wait("!document.querySelector('.plot .tip').hidden")
    assert "action 1" in browser.value("document.querySelector('.plot .tip').innerText")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert (browser.value(number), first == second) == ("state 1 of 3", False)

    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(ground)
    browser.click("#theme")
    assert browser.value(ground) != light
    assert browser.value("document.documentElement.scrollWidth") <= 1400
    assert not browser.complaints()


def test_page_fits_a_telephone_in_chromium(browser, tmp_path):
    runs = [make_run(tmp_path / name) for name in ("a", "b-with-a-very-long-name-that-goes-on-and-on")]
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(*runs), [cloud_data(2), cloud_data(17)])))
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    try:
        browser.call("Emulation.setDeviceMetricsOverride", **size)
        browser.open(path.as_uri())
        for number in (1, 2):
            browser.click(f".tabs button:nth-child({number})")
            assert browser.value("document.documentElement.scrollWidth") == 400
    finally:
        browser.call("Emulation.setDeviceMetricsOverride", **{**size, "width": 1400, "height": 1000, "mobile": False})
    assert not browser.complaints()


@pytest.mark.parametrize(
    ("dimension", "kind", "particles"), [(1, "curve", 64), (3, "pairs", 3 * 64), (17, "pairs", 10 * 64)]
)
def test_clouds_of_other_dimensions_in_chromium(browser, tmp_path, dimension, kind, particles):
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(make_run(tmp_path / "run")), [cloud_data(dimension)])))
    browser.open(path.as_uri())
    assert browser.value("document.querySelector('[data-cloud]').dataset.cloud") == kind
    assert browser.value("document.querySelectorAll('.cloud .particle').length") == particles
    if dimension > 5:
        browser.click(".chips button:nth-child(17)")
        assert browser.value("document.querySelectorAll('.chips [aria-pressed=true]').length") == 5
    assert not browser.complaints()


def test_several_runs_in_chromium(browser, tmp_path):
    runs = [make_run(tmp_path / name, about={"env": env}) for name, env in (("a", "x"), ("b", "y"), ("c", "x"))]
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(*runs), [cloud_data(2), "None here.", cloud_data(3)])))
    browser.open(path.as_uri())
    assert browser.value("document.querySelectorAll('.compare tbody tr').length") == 2
    assert "nothing is averaged" in browser.value("document.body.innerText")
    browser.click(".tabs button:nth-child(2)")
    assert "None here." in browser.value("document.body.innerText")
    browser.click(".tabs button:nth-child(3)")
    assert browser.value("document.querySelector('[data-cloud]').dataset.cloud") == "pairs"
    assert not browser.complaints()


def test_hostile_text_is_inert_in_chromium(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(hostile_run(tmp_path / "run")), ["<img src=x onerror=window.hacked=1>"])))
    browser.open(path.as_uri())
    browser.value("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.hover("[data-chart='Return in training'] svg")
    browser.wait("document.querySelectorAll('[data-chart]').length >= 30")
    assert browser.value("window.hacked") is None
    assert (
        browser.value(
            "document.querySelectorAll('main img, main iframe, main script, main base, main link, main meta').length"
        )
        == 0
    )
    text = browser.value("document.body.textContent")
    for hostile in HOSTILE:
        assert printable(hostile) in text
    assert browser.value("document.documentElement.scrollWidth") <= 1400
    assert not browser.complaints()


def test_empty_run_in_chromium(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(make_run(tmp_path / "run", records=0)))))
    browser.open(path.as_uri())
    assert "no records yet" in browser.value("document.body.innerText")
    assert not browser.complaints()
