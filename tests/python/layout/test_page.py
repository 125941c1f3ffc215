"""The browser page of a layout: written to a file, and served at an address of this machine."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

import meshfeed as mf
from meshfeed import _command
from meshfeed._layout.page import Server
from meshfeed._native import reports

REAL = Path(_command.BINARY)
LAYOUT = mf.layout({"data": 4}, mf.P("data"), {"é": ("int32", ())}, batch_size=30)
HANG = 60  # seconds


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the page by one that works without the page in the library."""
    monkeypatch.setattr(reports, "layout_page", "<page>{}</page>".format)


PAGE = f"<page>{LAYOUT.to_json()}</page>"


@pytest.mark.usefixtures("stand_in")
def test_the_page_is_written_to_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "layout.html", str(tmp_path / "text.html")):
        LAYOUT.to_html(path)
        assert Path(path).read_text(encoding="utf-8") == PAGE


@pytest.mark.usefixtures("stand_in")
def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "none" / "layout.html"
    with pytest.raises(mf.NotFoundError) as missing:
        LAYOUT.to_html(path)
    assert str(missing.value) == (
        f"Layout.to_html: '{path}' cannot be written: there is no folder '{path.parent}'; "
        "make the folder"
    )
    with pytest.raises(mf.InvalidArgumentError) as wrong:
        LAYOUT.to_html(None)  # type: ignore[arg-type]
    assert str(wrong.value) == "Layout.to_html: path=None: expected a path"


@pytest.mark.usefixtures("stand_in")
def test_the_page_is_served_until_it_is_closed() -> None:
    with LAYOUT.serve() as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert repr(server) == f"<layout page at {server.url}>"
        assert f'href="{server.url}"' in server._repr_html_()
        with urllib.request.urlopen(f"{server.url}?theme=dark", timeout=HANG) as answer:
            assert answer.read().decode() == PAGE
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert answer.headers["Cache-Control"] == "no-store"
        port = server._server.server_port
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=HANG)
    assert "meshfeed page" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("127.0.0.1:1", "/", 200),
        ("localhost", "/", 200),
        ("localhost", "/etc/passwd", 404),
        ("evil.example", "/", 403),
        ("127.0.0.1.evil.example:1", "/", 403),
        ("", "/", 403),
    ],
)
def test_it_serves_this_machine_alone(host: str, path: str, status: int) -> None:
    with Server("the page") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server._server.server_port, HANG)
        connection.request("GET", path, headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()


@pytest.mark.usefixtures("stand_in")
def test_ports_that_cannot_be_used() -> None:
    with LAYOUT.serve() as server:
        taken = server._server.server_port
        with pytest.raises(mf.ReadError) as busy:
            LAYOUT.serve(taken)
    assert str(busy.value) == (
        f"Layout.serve: port {taken} of 127.0.0.1 cannot be used: Address already in use; "
        "leave out port= to get a free one"
    )
    with pytest.raises(mf.InvalidArgumentError) as wrong:
        LAYOUT.serve(70000)
    assert str(wrong.value) == "Layout.serve: port=70000: expected an integer from 0 to 65535"


def test_a_script_waits_for_control_c() -> None:
    program = """
from meshfeed._layout.page import Server
s = Server("x")
join = s._thread.join
def waits():
    s._thread.join = join
    print(s.url, flush=True)
    join()
s._thread.join = waits
s.wait()
print(s._server.fileno())
"""
    script = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert script.stdout
    url = script.stdout.readline().strip()
    with urllib.request.urlopen(url, timeout=HANG) as answer:
        assert answer.read() == b"x"
    script.send_signal(signal.SIGINT)
    assert script.communicate(timeout=HANG)[0] == "-1\n"
    assert script.returncode == 0


def has_page() -> bool:
    """Returns whether the command of this checkout contains the page."""
    done = subprocess.run([REAL, "page"], capture_output=True, check=False)
    return done.returncode == 0


def test_the_real_page(tmp_path: Path) -> None:
    try:
        LAYOUT.to_html(tmp_path / "layout.html")
    except mf.UnsupportedError:
        pytest.skip("NOT TESTED: the page in the library; build it: make page lib")
    text = (tmp_path / "layout.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count(LAYOUT.to_json()) == 1


def test_library_and_command_contain_one_page(tmp_path: Path) -> None:
    if not REAL.exists() or not has_page():
        pytest.skip("NOT TESTED: the page in the command; build it: make page lib")
    LAYOUT.to_html(tmp_path / "layout.html")
    command = [str(REAL), "page", "-"]
    done = subprocess.run(
        command, input=LAYOUT.to_json().encode(), capture_output=True, timeout=HANG, check=True
    )
    assert (tmp_path / "layout.html").read_bytes() == done.stdout


def test_the_command_serves_until_control_c(tmp_path: Path) -> None:
    if not REAL.exists() or not has_page():
        pytest.skip("NOT TESTED: the page in the command; build it: make page lib")
    (tmp_path / "layout.json").write_text(LAYOUT.to_json())
    command = [str(REAL), "serve", str(tmp_path / "layout.json")]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert served.stdout
    url = served.stdout.readline().strip()
    with urllib.request.urlopen(url, timeout=HANG) as answer:
        assert answer.read().decode().count(LAYOUT.to_json()) == 1
    served.send_signal(signal.SIGINT)
    assert served.communicate(timeout=HANG) == ("", "")
    assert served.returncode == 0


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals to imitate")
def test_no_page_floods_a_terminal() -> None:
    if not REAL.exists() or not has_page():
        pytest.skip("NOT TESTED: the page in the command; build it: make page lib")
    master, terminal = os.openpty()
    command = [str(REAL), "page"]
    done = subprocess.run(
        command, stdout=terminal, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False
    )
    os.close(terminal)
    os.close(master)
    assert done.returncode == 2
    assert done.stderr.startswith("meshfeed: page: the page is too long for a terminal, ")
    remedy = "  write it to a file: append > layout.html to the command; or open it with "
    assert done.stderr.endswith(remedy + "meshfeed serve\n")
