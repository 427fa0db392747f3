"""The server of `watch`: local, careful with what it is asked, and light."""

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from report_runs import Outline, make_run, train_row
from s2ac.report.watch import make_server


@pytest.fixture
def served(tmp_path):
    """A run, its server's address, and a way to ask it."""
    run = make_run(tmp_path / "run", records=4)
    server = make_server(run)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield run, server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server, path, method="GET", **headers):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.server_address[1]}{path}", headers=headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def test_watch_serves_the_page_and_only_what_is_new(served):
    run, server = served
    assert server.server_address[0] == "127.0.0.1"
    status, page, headers = ask(server, "/")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert "connect-src 'self'" in page
    data = json.loads(Outline(page).scripts[0])
    assert (data["live"], data["wait"] >= 2, data["runs"][0]["done"]) == (True, True, 400)
    assert "left out while watching" in data["runs"][0]["no_clouds"]
    version = data["version_of_data"]
    assert ask(server, f"/data.json?version={version}")[:2] == (204, "")
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(train_row(seed, 500)) + "\n" for seed in range(3)))
    status, text, _ = ask(server, f"/data.json?version={version}")
    assert status == 200
    assert json.loads(text)["runs"][0]["done"] == 500


def test_watch_answers_local_names_and_known_paths_only(served):
    _, server = served
    port = server.server_address[1]
    assert ask(server, "/", Host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1:1", ""):
        assert ask(server, "/data.json", Host=host)[0] == 403
    for path in ("/run.json", "/../run.json", "/%2e%2e/metrics.jsonl", "/data.json/x", "/favicon.ico"):
        assert ask(server, path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "X"):
        assert ask(server, "/", method)[0] == 405
    assert "<" not in ask(server, "/<script>")[1]


WATCH = """
import signal, sys
from s2ac.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
sys.exit(main(sys.argv[1:]))
"""


def test_watch_prints_its_address_and_ends_cleanly(tmp_path):
    run = make_run(tmp_path / "run", records=2)
    process = subprocess.Popen(
        [sys.executable, "-c", WATCH, "watch", str(run)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=20)
    assert (process.returncode, error) == (0, "")
    assert "stopped watching" in output


def test_watch_needs_no_jax():
    code = "import s2ac.report.watch, s2ac.report.write, sys; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_watched_page_renews_itself(browser, served):
    run, server = served
    browser.open(f"http://127.0.0.1:{server.server_address[1]}/")
    assert browser.value("document.getElementById('live').textContent") == "live"
    steps = "document.querySelectorAll('.stat dd')[1].firstChild.textContent"
    assert browser.value(steps) == "400"
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(train_row(seed, 700)) + "\n" for seed in range(3)))
    browser.wait(f"{steps} === '700'", seconds=10)
    assert not browser.complaints()
