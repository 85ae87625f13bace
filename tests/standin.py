"""A stand-in for the Hugging Face hub on this machine: what huggingface_hub asks of it, and no
more."""

import hashlib
import http.server
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    """A directory at one commit; for those who have the token, where it has one."""

    folder: Path
    commit: str
    token: str | None = None

    def files(self, under: str = "") -> list[Path]:
        return [file for file in sorted((self.folder / under).rglob("*")) if file.is_file()]

    def name(self, file: Path) -> str:
        return str(file.relative_to(self.folder))


class Hub:
    """Serves repositories.

    Attributes:
        url: of the server.
        repositories: by "models/OWNER/NAME" or "datasets/OWNER/NAME".
        asked: (method, path) of every request.
        silent: whether no request is answered; "drips" for one byte after another without end.
        busy: the repository whose requests are too many.
    """

    def __init__(self, repositories: dict[str, Repository]) -> None:
        self.repositories = repositories
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


class _Handler(http.server.BaseHTTPRequestHandler):
    """Of the paths /OWNER/NAME/resolve/COMMIT/FILE, /api/models/OWNER/NAME/tree/COMMIT/FOLDER and
    /api/models/OWNER/NAME/revision/COMMIT, or "datasets" for "models"."""

    protocol_version = "HTTP/1.1"  # as clients keep their connections

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        if hub.silent:
            self.close_connection = True
            while hub.silent == "drips" and not hub.ended.wait(0.1):
                self.wfile.write(b"H")
            hub.ended.wait()
            return
        path = unquote(urlsplit(self.path).path)
        hub.asked.append((self.command, path))
        parts = path.removeprefix("/api").strip("/").split("/")
        if parts[0] not in ("models", "datasets"):
            parts.insert(0, "models")
        key = "/".join(parts[:3])
        what = parts[3] if len(parts) > 3 else "revision"
        rest = "/".join(parts[5:])
        repository = hub.repositories.get(key)
        if key == hub.busy:
            self._send(429)
        elif repository is None:
            self._refuse(401, "RepoNotFound")
        elif what == "resolve":
            self._file(repository, repository.folder / rest)
        elif what == "tree":
            self._send_json([_entry(repository, file) for file in repository.files(rest)])
        else:
            siblings = [{"rfilename": repository.name(file)} for file in repository.files()]
            self._send_json({"id": key, "sha": repository.commit, "siblings": siblings})

    def _file(self, repository, file):
        given = self.headers.get("Authorization")
        if repository.token and given != f"Bearer {repository.token}":
            self._refuse(403 if given else 401, "GatedRepo")
        elif not file.is_file():
            self._refuse(404, "EntryNotFound", repository.commit)
        else:
            content = file.read_bytes()
            tag = hashlib.sha256(content).hexdigest()
            headers = {"ETag": f'"{tag}"', "X-Repo-Commit": repository.commit}
            self._send(200, content, headers)

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


def _entry(repository, file):
    content = file.read_bytes()
    return {
        "type": "file",
        "path": repository.name(file),
        "oid": hashlib.sha1(content).hexdigest(),
        "size": len(content),
    }
