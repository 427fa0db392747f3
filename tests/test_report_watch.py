"""The server of `watch`: local, careful with what it is asked, and light."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from report_runs import Outline, make_run, train_row
from s2ac.errors import S2acError
from s2ac.report import watch
from s2ac.report.watch import is_local, make_server


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


def test_the_usual_port_may_be_left_out():
    """A browser leaves out ":80"; it never leaves out another port."""
    assert is_local("127.0.0.1", 80)
    assert is_local("localhost", 80)
    assert is_local("localhost:80", 80)
    assert not is_local("localhost", 8080)
    assert not is_local("evil.example", 80)
    assert not is_local("", 80)


def test_watch_on_the_usual_port_answers(tmp_path):
    try:
        server = make_server(make_run(tmp_path / "run"), 80)
    except S2acError:
        pytest.skip("port 80 is not free, or not ours to take")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        with urllib.request.urlopen("http://127.0.0.1/", timeout=20) as answer:
            assert answer.status == 200
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def connect(server, data=b""):
    connection = socket.create_connection(server.server_address, timeout=20)
    connection.sendall(data)
    return connection


def everything(connection):
    """What comes until the other side ends the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


MALFORMED = [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\nHost: localhost\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    b"GET http://[ HTTP/1.0\r\nHost: localhost\r\n\r\n", b"GET //[ HTTP/1.0\r\n\r\n", b"GET / HTTP/1.0\r\nHost: \xff\xfe\r\n\r\n",
    b"GET / HTTP/1.0\r\n: x\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"GET /" + b"a" * 70_000 + b" HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.0\r\n" + b"A" * 70_000 + b"\r\n\r\n", b"GET /\x00\x1b[31m HTTP/1.0\r\n\r\n", b"POST / HTTP/1.0\r\nContent-Length: 1e9\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("request_bytes", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_requests_get_a_plain_line_and_no_traceback(served, capfd, request_bytes):
    _, server = served
    with connect(server, request_bytes) as connection:
        connection.shutdown(socket.SHUT_WR)
        try:
            answer = everything(connection)
        except ConnectionResetError:  # it was refused before it was read to its end
            answer = b""
    if b"HTTP/1.0" in answer:
        assert re.match(rb"HTTP/1.0 (400|403|404|405) ", answer)
    lines = (b"only GET\n", b"HTTP/0.9 is too old\n", b"this server answers to 127.0.0.1 and localhost only\n")
    assert not answer or answer.endswith(lines)
    assert ask(server, "/")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_connection_has_only_so_much_time(served):
    """A request that trickles in keeps a connection no longer than one that says nothing more."""
    _, server = served
    server.patience = 1.0
    started = time.monotonic()
    with connect(server, b"GET / HTTP/1.0\r\n") as trickling, connect(server, b"GET / HTTP/1.0") as silent:
        ended = False
        while not ended and time.monotonic() < started + 15:
            time.sleep(0.05)
            try:
                trickling.sendall(b"A: b\r\n")
            except OSError:  # the other side has ended it
                ended = True
        assert ended
        assert 0.9 < time.monotonic() - started < 5
        assert b"200" not in everything(silent)
    assert ask(server, "/")[0] == 200


def test_there_are_only_so_many_connections(served):
    _, server = served
    server.patience = 2.0
    threads = threading.active_count()
    held = [connect(server) for _ in range(3 * watch.MOST_CONNECTIONS)]
    try:
        assert held[-1].recv(1) == b""  # ended at once
        assert threading.active_count() - threads <= watch.MOST_CONNECTIONS
        held[0].settimeout(0.1)
        with pytest.raises(TimeoutError):
            held[0].recv(1)  # still heard
        time.sleep(2.2)
        assert ask(server, "/")[0] == 200  # their time is over
    finally:
        for connection in held:
            connection.close()


def test_a_run_that_becomes_unreadable_is_said(served):
    run, server = served
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").mkdir()
    status, text, _ = ask(server, "/data.json")
    assert (status, text) == (503, f"cannot read {run}/metrics.jsonl: not a plain file\n")


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
