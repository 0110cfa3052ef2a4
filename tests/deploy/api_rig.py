"""A little API server of Workflows and a little web server, for programs that talk to them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonpatch


@dataclass
class Web:
    """What a server answers, and what it was asked."""

    status: int = 200
    workflows: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        """Play the API for Workflows; everything else gets the fixed status."""
        parts = urlsplit(target)
        if "/workflows" not in parts.path:
            return self.status, {}
        name = parts.path.rpartition("/workflows")[2].strip("/")
        if not name:
            selector = parse_qs(parts.query).get("labelSelector", [""])[0]
            return 200, {"items": [item for item in self.workflows.values() if fits(item, selector)]}
        if name not in self.workflows:
            return 404, {}
        if method == "PATCH":
            try:
                self.workflows[name] = jsonpatch.apply_patch(self.workflows[name], body)
            except jsonpatch.JsonPatchException:
                return 422, {}
        return 200, self.workflows[name]


def fits(item: dict[str, Any], selector: str) -> bool:
    """Evaluate `a=b,c!=d` on an object's labels."""
    labels = item["metadata"].get("labels", {})
    for part in selector.split(","):
        key, _, value = part.replace("!=", "\0").partition("\0" if "!=" in part else "=")
        if (labels.get(key) == value) == ("!=" in part):
            return False
    return True


@contextmanager
def serve(web: Web) -> Iterator[Web]:
    """Serve on a free port of this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(raw) if raw else None
            web.requests.append(
                {"method": self.command, "path": self.path, "body": body, "headers": dict(self.headers)}
            )
            status, answer = web.answer(self.command, self.path, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = handle_any

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
