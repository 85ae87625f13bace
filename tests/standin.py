"""A stand-in for the Hugging Face hub on this machine: what huggingface_hub asks of it, and no
more."""

import hashlib
import http.server
import json
import re
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

FILE = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree)/[^/]+(?:/(.*))?)?")


class Hub:
    """Repositories, each a directory at one commit; a model's or a dataset's by its name.

    Attributes:
        url: of the server.
        asked: (method, path) of every request.
        silent: whether no request is answered.
        busy: the name of a repository whose requests are too many.
    """

    def __init__(self, commits: dict[str, str]) -> None:
        self.commits, self.folders, self.tokens, self.asked = commits, {}, {}, []
        self.silent, self.busy, self.ended = False, None, threading.Event()
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def add(self, kind: str, name: str, folder: Path, token: str | None = None) -> None:
        """Serve a directory as "models" or "datasets" NAME; to who has the token, where one is
        given."""
        self.folders[kind, name], self.tokens[kind, name] = folder, token


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # as clients keep their connections

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if self.hub.silent:
            self.close_connection = True
            self.hub.ended.wait()
            return
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path))
        if match := API.fullmatch(path):
            kind, name, what, under = match.groups()
        else:
            match = FILE.fullmatch(path)
            kind, name, what, under = match[1] or "models", match[2], match[4], None
        if name == self.hub.busy:
            self._send(429)
        elif (kind, name) not in self.hub.folders:
            self._refuse(401, "RepoNotFound")
        elif match.re is FILE:
            self._file(kind, name, what)
        else:
            self._listing(name, self.hub.folders[kind, name], what, under)

    def _file(self, kind, name, path):
        file, commit = self.hub.folders[kind, name] / path, self.hub.commits[name]
        token, given = self.hub.tokens[kind, name], self.headers.get("Authorization")
        if token and given != f"Bearer {token}":
            self._refuse(403 if given else 401, "GatedRepo")
        elif not file.is_file():
            self._refuse(404, "EntryNotFound", commit)
        else:
            content = file.read_bytes()
            self._send(
                200,
                content,
                {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": commit},
            )

    def _listing(self, name, folder, what, under):
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        if what == "tree":
            entries = [
                _entry(folder, file)
                for file in files
                if file.is_relative_to(folder / (under or ""))
            ]
            self._send(200, json.dumps(entries).encode())
        else:
            siblings = [{"rfilename": str(file.relative_to(folder))} for file in files]
            self._send(
                200,
                json.dumps(
                    {"id": name, "sha": self.hub.commits[name], "siblings": siblings}
                ).encode(),
            )

    def _refuse(self, status, code, commit=""):
        self._send(
            status, b"", {"X-Error-Code": code, "X-Error-Message": code, "X-Repo-Commit": commit}
        )

    def _send(self, status, content=b"", headers=None):
        self.send_response(status)
        for key, value in {**(headers or {}), "Content-Length": len(content)}.items():
            self.send_header(key, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _entry(folder, file):
    content = file.read_bytes()
    digest = hashlib.sha1(content).hexdigest()
    return {
        "type": "file",
        "path": str(file.relative_to(folder)),
        "oid": digest,
        "size": len(content),
    }
