"""A Hub for one process: the routes that huggingface_hub's client uses, answered from memory.

Faults are set by what they spoil: the name of a file, or ``api`` for the description of a model.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin", ".spm", ".model")
"""Files that the Hub keeps as large ones (LFS)."""
_API = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?")
_RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


def git_hash(content: bytes) -> str:
    """Git's name of a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content: bytes) -> str:
    """The SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


@dataclass
class Repository:
    """A model on the Hub: commits, branches, and who may read it."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    moved_to: str | None = None

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """A new state of a branch; gives its name."""
        listing = json.dumps(
            [len(self.commits), sorted((name, sha256(data)) for name, data in files.items())]
        )
        name = hashlib.sha1(listing.encode()).hexdigest()
        self.commits[name] = files
        self.branches[branch] = name
        return name

    def find(self, revision: str) -> str | None:
        """The commit that a branch or a commit's name stands for."""
        return revision if revision in self.commits else self.branches.get(revision)


class HubServer(ThreadingHTTPServer):
    """A running Hub.

    Attributes:
        url: Its address.
        storage: Where large files lie: on another host, as the Hub's do.
        repositories: Models by name.
        faults: What is spoilt: name of a file, or ``api``, to the kind of fault.
        sizes: Sizes that are told instead of the true ones, by name of a file.
        requests: Methods and paths so far.
        waiting: Set once a request hangs.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.storage = f"http://localhost:{self.server_address[1]}/storage"
        self.repositories: dict[str, Repository] = {}
        self.faults: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.requests: list[tuple[str, str]] = []
        self.waiting = threading.Event()
        self.released = threading.Event()

    def add(self, name: str, directory: Path, **options: Any) -> str:
        """Puts the files of a directory on the Hub; gives the commit."""
        self.repositories[name] = Repository(**options)
        return self.repositories[name].commit(read_files(directory))

    def asked(self, method: str, part: str = "", file: str = "") -> int:
        """How many requests of a method had a part in their path, and a file at its end."""
        return sum(
            found == method and part in path and path.endswith(file)
            for found, path in self.requests
        )

    def hang(self) -> None:
        """Keeps a request waiting until the test is over."""
        self.waiting.set()
        self.released.wait()


def read_files(directory: Path) -> dict[str, bytes]:
    """The files of a directory by name."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@contextmanager
def running_hub() -> Iterator[HubServer]:
    """A Hub that answers until the block ends."""
    server = HubServer()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def log_message(self, *arguments: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        path = self._path()
        if match := _API.fullmatch(path):
            self._describe(match[1], match[2] or "main")
        elif path.startswith("/storage/"):
            self._send_storage(*path.removeprefix("/storage/").split("/", 1))
        elif match := _RESOLVE.fullmatch(path):
            self._resolve(match[1], match[2], match[3])
        else:
            self._refuse(404)

    do_HEAD = do_GET  # noqa: N815

    def _path(self) -> str:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append((self.command, path))
        return path

    def _answer(self, values: object, status: int = 200, **headers: str) -> None:
        self._send(
            json.dumps(values).encode(), status, **{"Content-Type": "application/json", **headers}
        )

    def _send(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, status: int, code: str = "") -> None:
        self._answer({"error": code}, status, **({"X-Error-Code": code} if code else {}))

    def _may_read(self, name: str) -> bool:
        repository = self.server.repositories.get(name)
        open_to_all = repository is not None and not repository.private
        if not open_to_all and "Authorization" not in self.headers:
            self._refuse(401, "RepoNotFound")
        elif repository is None:
            self._refuse(404, "RepoNotFound")
        elif repository.moved_to:
            self._send(b"", 307, Location=self.path.replace(name, repository.moved_to))
        else:
            return True
        return False

    def _describe(self, name: str, revision: str) -> None:
        if self._is_spoilt("api") or not self._may_read(name):
            return
        repository = self.server.repositories[name]
        commit = repository.find(revision)
        if commit is None:
            self._refuse(404, "RevisionNotFound")
            return
        siblings = [self._sibling(*item) for item in repository.commits[commit].items()]
        self._answer({"id": name, "sha": commit, "gated": repository.gated, "siblings": siblings})

    def _sibling(self, name: str, content: bytes) -> dict[str, object]:
        size = self.server.sizes.get(name, len(content))
        found: dict[str, object] = {"rfilename": name, "size": size, "blobId": git_hash(content)}
        if name.endswith(LARGE):
            found["lfs"] = {"sha256": sha256(content), "size": size, "pointerSize": 130}
        return found

    def _is_spoilt(self, what: str) -> bool:
        fault = self.server.faults.get(what)
        if fault == "slow":
            self.server.hang()
            self.close_connection = True
        elif fault == "error":
            self._refuse(503)
        elif fault == "nonsense":
            self._send(b"<html>Please log in to the hotel's network.</html>")
        elif fault in ("407", "403 page"):
            self._send(
                b"<html>Log in to the proxy.</html>", int(fault[:3]), Content_Type="text/html"
            )
        elif fault == "wrong":
            self._answer(
                {"id": "../../x", "sha": "main", "siblings": [{"rfilename": "config.json"}]}
            )
        else:
            return False
        return True

    def _resolve(self, name: str, revision: str, file: str) -> None:
        if not self._may_read(name):
            return
        repository = self.server.repositories[name]
        commit = repository.find(revision)
        content = repository.commits[commit].get(file) if commit else None
        if repository.gated and "Authorization" not in self.headers:
            self._refuse(401, "GatedRepo")
        elif content is None or commit is None or self.server.faults.get(file) == "missing":
            self._refuse(404, "EntryNotFound")
        elif file.endswith(LARGE):
            headers = {"X-Repo-Commit": commit, "X-Linked-Etag": f'"{sha256(content)}"'}
            headers |= {"X-Linked-Size": str(len(content)), "ETag": f'"{git_hash(content)}"'}
            headers |= {
                "X-Xet-Hash": sha256(content),
                "X-Xet-Refresh-Route": f"{self.server.url}/no-xet-here",
            }
            self._send(
                b"", 302, Location=f"{self.server.storage}/{sha256(content)}/{file}", **headers
            )
        else:
            self._send_file(
                file, content, {"X-Repo-Commit": commit, "ETag": f'"{git_hash(content)}"'}
            )

    def _send_storage(self, digest: str, file: str) -> None:
        contents = (
            content
            for repository in self.server.repositories.values()
            for files in repository.commits.values()
            for content in files.values()
        )
        content = next(content for content in contents if sha256(content) == digest)
        self._send_file(file, content, {"ETag": f'"{digest}"'})

    def _send_file(self, file: str, content: bytes, headers: dict[str, str]) -> None:
        fault = self.server.faults.get(file) if self.command == "GET" else None
        start, status = 0, 200
        if match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")):
            start = int(match[1])
            status = 206
            headers |= {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        if fault == "damaged":
            content = content[:-1] + bytes([content[-1] ^ 1])
        if fault in ("cut", "slow"):
            self._cut(fault, content[start:], status, headers)
        elif fault == "oversized":
            self._pour(content, headers)
        else:
            self._send(content[start:], status, **headers)

    def _cut(self, fault: str, content: bytes, status: int, headers: dict[str, str]) -> None:
        """Sends a part and then nothing more, or closes the line."""
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        if fault == "slow":
            self.server.hang()
        self.close_connection = True

    def _pour(self, content: bytes, headers: dict[str, str]) -> None:
        """Sends without end and without saying how much it will be."""
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        try:
            while not self.server.released.is_set():
                self.wfile.write(bytes(2**20))
        except OSError:
            pass
