"""A web server of ranges for tests, which counts, waits, fails and changes when it is told to."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, quote, unquote


class WebServer:
    """Files by path. Set `before` to a function that is called with the number of each request."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.documents: dict[str, Any] = {}  # by path; values, or functions that return them
        self.etags: dict[str, str] = {}  # by path, instead of the version
        self.bucket: Bucket | None = None
        self.heard = ""  # the headers of all requests
        self.version = 1
        self.requests: list[str] = []  # their ranges
        self.sent = 0  # bytes of bodies
        self.before: Callable[[int], int | None] = lambda number: None  # may return a code
        self.url = ""
        self._lock = threading.Lock()

    def begin(self, asked: str) -> int:
        with self._lock:
            self.requests.append(asked)
            return len(self.requests)

    def count(self, size: int) -> None:
        with self._lock:
            self.sent += size


class Hub:
    """A stand-in for the Hugging Face hub with one dataset, hf://datasets/org/name, or a model.

    Args:
        server: serves it.
        kind: "datasets", or "models" for hf://org/name.
    """

    def __init__(self, server: WebServer, kind: str = "datasets") -> None:
        self._server, self._kind = server, kind

    def commit(self, sha: str, files: dict[str, bytes]) -> None:
        """Moves the branch main to a commit, which has files by their names in a directory."""
        documents, dataset = self._server.documents, f"{self._kind}/org/name"
        at = dataset.removeprefix("models/")
        documents[f"/api/{dataset}/tree/{sha}"] = [{"type": "directory", "path": "data"}]
        documents[f"/api/{dataset}/tree/{sha}/data"] = [
            {
                "type": "file",
                "path": f"data/{name}",
                "size": len(data),
                "lfs": {"oid": hashlib.sha256(data).hexdigest()},
            }
            for name, data in files.items()
        ]
        for name, data in files.items():
            self._server.files[f"/{at}/resolve/{sha}/data/{name}"] = data
        documents[f"/api/{dataset}/revision/main"] = {"sha": sha}


class Bucket:
    """A stand-in for a store with one bucket, named bucket. It answers listings in one page.

    Args:
        server: serves it.
    """

    def __init__(self, server: WebServer) -> None:
        self._server = server
        server.bucket = self

    def put(self, key: str, data: bytes) -> None:
        self._server.files["/bucket/" + quote(key, safe="/-._~")] = data

    def listing(self, query: dict[str, list[str]]) -> bytes:
        """Returns the page of a listing, for S3 and for Google Cloud Storage."""
        prefix, after = (query.get(name, [""])[0] for name in ("prefix", "start-after"))
        found: dict[str, str] = {}
        for path, data in self._server.files.items():
            key, inside = unquote(path.removeprefix("/bucket/")), path.startswith("/bucket/")
            directory, slash, _ = key.removeprefix(prefix).partition("/")
            name = prefix + directory + slash if "delimiter" in query else key
            if not inside or not key.startswith(prefix) or name <= after:
                continue
            if name.endswith("/"):
                found[name] = f"<CommonPrefixes><Prefix>{quote(name)}</Prefix></CommonPrefixes>"
                continue
            version = self._server.version
            found[name] = (
                f"<Contents><Key>{quote(name)}</Key><Size>{len(data)}</Size>"
                f'<ETag>"{version}"</ETag><Generation>{version}</Generation></Contents>'
            )
        items = "".join(found[name] for name in sorted(found))
        encoding = "<EncodingType>url</EncodingType>"
        return f"<ListBucketResult>{encoding}{items}</ListBucketResult>".encode()


@contextmanager
def web_server() -> Iterator[WebServer]:
    """Serves on the loopback interface until the end of the block."""
    state = WebServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            state.heard += str(self.headers)
            path, _, query = self.path.partition("?")
            body = b""
            if (document := state.documents.get(path)) is not None:
                body = json.dumps(document() if callable(document) else document).encode()
            elif state.bucket is not None and path == "/bucket/":
                body = state.bucket.listing(parse_qs(query))
            if body:
                state.begin(self.path)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            asked = self.headers.get("Range", "")
            code = state.before(state.begin(asked)) or 206
            data = state.files.get(path)
            etag = f'"{state.etags.get(path, state.version)}"'
            if data is None:
                code = 404
            elif code == 206 and self.headers.get("If-Match", etag) != etag:
                code = 412
            generation = str(state.version)
            if (
                code == 206
                and self.headers.get("x-goog-if-generation-match", generation) != generation
            ):
                code = 412
            if data is None or code != 206:
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.send_header("ETag", etag)
                self.end_headers()
                return
            found = re.fullmatch(r"bytes=(\d*)-(\d+)", asked)
            assert found is not None, asked
            first, last = found.groups()
            start = int(first) if first else max(len(data) - int(last), 0)
            stop = min(int(last) + 1, len(data)) if first else len(data)
            self.send_response(206)
            self.send_header("ETag", etag)
            self.send_header("x-goog-generation", generation)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
            self.send_header("Content-Length", str(stop - start))
            self.end_headers()
            state.count(stop - start)
            self.wfile.write(data[start:stop])

        def log_message(self, *args: Any) -> None:
            """Keeps the output of tests free of requests."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *args: Any) -> None:
            """Leaves out the traceback of a client that has gone."""

    with Server(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
