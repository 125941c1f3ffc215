"""Serves the browser page of a layout at an address of this machine."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from meshfeed.errors import ReadError

HOST = "127.0.0.1"


class Server:
    """Serves a page at an address of this machine until it is closed or the program ends.

    Only programs on this machine can connect to it. A notebook shows the server as a link.

    Args:
        text: the page.
        port: the port; 0 for a free one.

    Raises:
        ReadError: the port cannot be used.
    """

    def __init__(self, text: str, port: int = 0) -> None:
        class Handler(_Handler):
            page = text.encode()

        try:
            self._server = ThreadingHTTPServer((HOST, port), Handler)
        except OSError as e:
            message = f"port {port} of {HOST} cannot be used: {e.strerror}"
            raise ReadError(message, hint="leave out port= to get a free one") from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="meshfeed page", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self._server.server_port}/"

    def wait(self) -> None:
        """Waits for Ctrl-C, then closes the server."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stops serving. A second call does nothing."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<layout page at {self.url}>"

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">{self.url}</a>'


class _Handler(BaseHTTPRequestHandler):
    """Sends the page to requests with the Host header 127.0.0.1 or localhost.

    Other hosts are rejected, because a web site could let its own name resolve to this address.
    Its script could then read the page.
    """

    page: bytes

    def do_GET(self) -> None:
        """Sends the page."""
        if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
            self.send_error(403, "this page is for browsers of this machine")
        elif self.path.partition("?")[0] != "/":
            self.send_error(404)
        else:
            self._send()

    def _send(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.page)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Logs nothing: a library does not write to the program's terminal."""
