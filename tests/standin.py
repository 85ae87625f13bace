"""A stand-in for the Hugging Face hub on this machine: what huggingface_hub and datasets ask of it, and no more."""

import hashlib
import http.server
import json
import re
import threading
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

FILE = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+)(?:/(.*))?)?")


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
        """Serve a directory as "models" or "datasets" NAME; to who has the token, where one is given."""
        self.folders[kind, name], self.tokens[kind, name] = folder, token


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # as clients keep their connections

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body=b""):
        if self.hub.silent:
            self.close_connection = True
            return self.hub.ended.wait()
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path))
        if match := API.fullmatch(path):
            kind, name, what, revision, under = match.groups()
        elif match := FILE.fullmatch(path):
            kind, (name, revision, what), under = match[1] or "models", match.groups()[1:], None
        else:
            return self._refuse(404)
        if name == self.hub.busy:
            return self._refuse(429)
        if (kind, name) not in self.hub.folders:
            return self._refuse(401, "RepoNotFound")
        folder, commit = self.hub.folders[kind, name], self.hub.commits[name]
        if revision not in (None, "main", commit):
            return self._refuse(404, "RevisionNotFound")
        if FILE.fullmatch(path):
            return self._refusal(kind, name) or self._file(folder / what, commit)
        found = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        names = [str(file.relative_to(folder)) for file in found]
        if what is None or what == "revision":
            siblings = [{"rfilename": file} for file in names]
            return self._json({"id": name, "sha": commit, "private": False, "gated": False, "siblings": siblings})
        if what == "tree":
            inside = folder / (under or "")
            if not inside.is_dir():
                return self._refuse(404, "EntryNotFound")
            every = inside.glob("**/*" if "recursive=true" in self.path.lower() else "*")
            return self._json([_entry(folder, path) for path in sorted(every)])
        wanted = [folder / path for path in parse_qs(body.decode()).get("paths", [])]
        return self._json([_entry(folder, path) for path in wanted if path.exists()])

    def _refusal(self, kind, name):
        token, given = self.hub.tokens[kind, name], self.headers.get("Authorization")
        if token and given != f"Bearer {token}":
            return self._refuse(403 if given else 401, "GatedRepo")
        return None

    def _file(self, file, commit):
        if not file.is_file():
            self._refuse(404, "EntryNotFound", commit=commit)
            return
        content = file.read_bytes()
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        self._send(200, content, {"ETag": etag, "X-Repo-Commit": commit})

    def _json(self, value):
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _refuse(self, status, code=None, commit=None):
        headers = {"X-Error-Code": code, "X-Error-Message": code, "X-Repo-Commit": commit}
        self._send(status, b"", {key: value for key, value in headers.items() if value})
        return True

    def _send(self, status, content, headers):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": len(content)}.items():
            self.send_header(key, str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(content)


def _entry(folder, path):
    entry = {"path": str(path.relative_to(folder)), "oid": hashlib.sha1(str(path).encode()).hexdigest()}
    if path.is_dir():
        return {**entry, "type": "directory", "size": 0}
    content = path.read_bytes()
    found = {**entry, "type": "file", "size": len(content)}
    if path.suffix in (".parquet", ".safetensors"):  # which the hub keeps in large-file storage
        found["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return found
