"""A stand-in for the Hugging Face hub on this machine: what huggingface_hub asks of it, and no
more."""

import hashlib
import http.server
import json
import re
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "(?P<name>[^/]+/[^/]+)"
FILE = re.compile(rf"/((?P<datasets>datasets)/)?{NAME}/resolve/[^/]+/(?P<file>.+)")
WHAT = r"(/revision/[^/]+|(?P<tree>/tree/[^/]+(/(?P<under>.*))?))?"
API = re.compile(rf"/api/(?P<kind>models|datasets)/{NAME}{WHAT}")


class Hub:
    """Repositories, each a directory at one commit; a model's or a dataset's by its name.

    Attributes:
        url: of the server.
        asked: (method, path) of every request.
        silent: whether no request is answered.
        busy: the name of a repository whose requests are too many.
    """

    def __init__(self, commits: dict[str, str]) -> None:
        self.commits = commits
        self.folders = {}
        self.tokens = {}
        self.asked = []
        self.silent = False
        self.busy = None
        self.ended = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.hub = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def add(self, kind: str, name: str, folder: Path, token: str | None = None) -> None:
        """Serve a directory as "models" or "datasets" NAME; to who has the token, where one is
        given."""
        self.folders[kind, name] = folder
        self.tokens[kind, name] = token


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # as clients keep their connections

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        if hub.silent:
            self.close_connection = True
            hub.ended.wait()
            return
        path = unquote(urlsplit(self.path).path)
        hub.asked.append((self.command, path))
        if match := FILE.fullmatch(path):
            kind = match["datasets"] or "models"
        else:
            match = API.fullmatch(path)
            kind = match["kind"]
        name = match["name"]
        folder = hub.folders.get((kind, name))
        if name == hub.busy:
            self._send(429)
        elif folder is None:
            self._refuse(401, "RepoNotFound")
        elif match.re is FILE:
            self._file(folder / match["file"], hub.commits[name], hub.tokens[kind, name])
        elif match["tree"]:
            under = folder / (match["under"] or "")
            self._send_json([_entry(folder, file) for file in _files(under)])
        else:
            siblings = [{"rfilename": str(file.relative_to(folder))} for file in _files(folder)]
            self._send_json({"id": name, "sha": hub.commits[name], "siblings": siblings})

    def _file(self, file, commit, token):
        given = self.headers.get("Authorization")
        if token and given != f"Bearer {token}":
            self._refuse(403 if given else 401, "GatedRepo")
        elif not file.is_file():
            self._refuse(404, "EntryNotFound", commit)
        else:
            content = file.read_bytes()
            tag = hashlib.sha256(content).hexdigest()
            self._send(200, content, {"ETag": f'"{tag}"', "X-Repo-Commit": commit})

    def _refuse(self, status, code, commit=""):
        why = {"X-Error-Code": code, "X-Error-Message": code, "X-Repo-Commit": commit}
        self._send(status, headers=why)

    def _send_json(self, content):
        self._send(200, json.dumps(content).encode())

    def _send(self, status, content=b"", headers=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _files(folder):
    return [file for file in sorted(folder.rglob("*")) if file.is_file()]


def _entry(folder, file):
    content = file.read_bytes()
    return {
        "type": "file",
        "path": str(file.relative_to(folder)),
        "oid": hashlib.sha1(content).hexdigest(),
        "size": len(content),
    }
