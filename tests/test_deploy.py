"""What deploy/ says fits together, and fits the app: names, ports, paths, bounds, and nginx's own
check."""

import configparser
import getpass
import gzip
import http.client
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.request
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
import yaml
from streamlit.web.server.starlette import starlette_routes as routes
from waiting import until

from explorer.app.server.hosted import Bounds
from transformer.hub.settings import HOSTED_VARIABLE

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
HEALTH = f"/{routes.ROUTE_HEALTH}"
METRICS = f"/{routes.ROUTE_METRICS}"
CONTAINERFILE = re.sub(r"\\\n\s*", "", (DEPLOY / "Containerfile").read_text())
NGINX = (DEPLOY / "nginx.conf").read_text()
DEBIAN_CONNECTIONS = 768
"""Connections of a worker in Debian's nginx.conf."""


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "attention-explorer@.service")
    return parser


def test_the_image_has_what_the_app_needs_and_starts_it_without_rights() -> None:
    lines = [line for line in CONTAINERFILE.splitlines() if line and not line.startswith("#")]
    words = [line.split()[0] for line in lines]
    assert words.index("USER") > max(i for i, word in enumerate(words) if word in ("COPY", "RUN"))
    assert "USER root" not in CONTAINERFILE
    pinned = re.search(r"^torch==\S+$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert pinned
    assert f"pip install --no-cache-dir {pinned[0]} " in CONTAINERFILE
    assert f"http://127.0.0.1:8501{HEALTH}" in CONTAINERFILE
    command = yaml.safe_load(CONTAINERFILE.splitlines()[-1].removeprefix("CMD "))
    assert command[:3] == ["streamlit", "run", "app.py"]
    left_out = {*(ROOT / ".dockerignore").read_text().split()}
    assert {".git", ".venv"} <= left_out
    assert (
        not {"app.py", "static", "assets", ".streamlit", "pages", "explorer", "transformer"}
        & left_out
    )
    for text in (CONTAINERFILE, (DEPLOY / "attention-explorer@.service").read_text()):
        assert f"{HOSTED_VARIABLE}=on" in text, "everything that is hosted is bounded"


def test_the_unit_starts_the_app_where_only_the_proxy_reaches_it() -> None:
    service = unit()["Service"]
    command = shlex.split(service["ExecStart"])
    assert command[0].endswith("/bin/streamlit")
    assert command[1:3] == ["run", "app.py"]
    options = dict(zip(command[3::2], command[4::2], strict=True))
    assert options["--server.address"] == "127.0.0.1"
    assert options["--server.port"] == "%i"
    assert command[0].startswith(service["WorkingDirectory"])
    rights = [service[name] for name in ("DynamicUser", "ProtectSystem", "NoNewPrivileges")]
    assert rights == ["yes", "strict", "yes"]


def test_the_proxy_keeps_a_visitor_at_one_process_and_the_metrics_to_itself() -> None:
    upstream = re.search(r"upstream (\w+) \{(.*?)\}", NGINX, re.DOTALL)
    assert upstream
    assert "hash $visitor" in upstream[2]
    assert len(re.findall(r"server 127\.0\.0\.1:\d+", upstream[2])) > 1
    passed = re.findall(r"proxy_pass http://(\w+);", NGINX)
    assert set(passed) == {upstream[1]}
    places = re.findall(r"location (?:~ |= )?(\S+) \{([^}]*)\}", NGINX)
    denied = [place for place, what in places if "deny" in what]
    for path in (METRICS, "/_stcore/agent/interact", "/_stcore/agent/mcp"):
        assert any(re.search(place, path) for place in denied), path
    for place in ("/_stcore/stream", "/_stcore/upload_file/1/2"):
        assert any(re.search(found, place) for found in re.findall(r"location ~ (\S+) ", NGINX))
    largest = re.search(r"maxUploadSize = (\d+)", (ROOT / ".streamlit" / "config.toml").read_text())
    assert largest
    body = f"{int(largest[1]) + 1}m"  # the file, and what a form puts around it
    assert f"client_max_body_size {body};" in dict(places)["/_stcore/upload_file/"]
    assert re.findall(r"client_max_body_size (\S+);", NGINX) == ["64k", body]


def test_one_address_cannot_take_all_connections_and_a_process_has_files_for_all_it_gets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    bounds = {name: int(most) for name, most in re.findall(r"limit_conn (\w+) (\d+)", NGINX)}
    assert 2 * (bounds["sockets"] + bounds["connections"]) <= DEBIAN_CONNECTIONS
    most = {int(each) for each in re.findall(r"max_conns=(\d+)", NGINX)}
    assert max(most) < int(unit()["Service"]["LimitNOFILE"]) / 2
    assert Bounds.from_environment().visitors < min(most)


class Files(BaseHTTPRequestHandler):
    """Answers every request with a script, and notes what was asked for; holds web-sockets open."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        if self.headers["Upgrade"]:
            self.send_response(101)
            self.send_header("Upgrade", self.headers["Upgrade"])
            self.send_header("Connection", "upgrade")
            self.end_headers()
            with suppress(OSError):
                self.rfile.read()  # until the other side closes
            self.close_connection = True
            return
        self.asked.append(self.path)
        body = b"const nothing = 0;\n" * 1000
        self.send_response(200)
        self.send_header("Content-Type", "application/javascript")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Writes nothing."""


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[str]:
    """The address of nginx with our configuration before a server of files; with TLS, its port +
    1."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/usr/local/sbin")
    if nginx is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is not installed")
    key = tmp_path / "privkey.pem"
    certificate = tmp_path / "fullchain.pem"
    request = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 1"
    subprocess.run(
        [*request.split(), "-keyout", key, "-out", certificate], capture_output=True, check=True
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as behind:
        behind.daemon_threads, behind.block_on_close = True, False
        threading.Thread(target=behind.serve_forever, daemon=True).start()
        port = free_port()
        # 443 first: a port that the system gave may have these digits
        site = re.sub(r"# (listen 443|ssl_)", r"\1", NGINX).replace("443", f"127.0.0.1:{port + 1}")
        site = re.sub(r"127\.0\.0\.1:850\d", f"127.0.0.1:{behind.server_port}", site)
        site = site.replace("listen 8080", f"listen 127.0.0.1:{port}")
        site = site.replace("/etc/letsencrypt/live/HOST", str(tmp_path)).replace(
            "/var/lib/nginx", str(tmp_path)
        )
        whole = f"user {getpass.getuser()}; pid {tmp_path}/pid; error_log stderr; daemon off;\n"
        whole += f"worker_processes 1; events {{ worker_connections {DEBIAN_CONNECTIONS}; }}\n"
        whole += f"http {{ access_log off; ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;\n{site}}}\n"
        (tmp_path / "nginx.conf").write_text(whole)
        command = [nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
        done = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        running = subprocess.Popen(command)
        try:
            until(lambda: listens(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()
            running.wait(timeout=20)
            behind.shutdown()


def free_port() -> int:
    """A port that is free, as the one after it is."""
    while True:
        with (
            socket.socket() as probe,
            socket.socket() as following,
            suppress(OSError, OverflowError),
        ):
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            following.bind(("127.0.0.1", port + 1))
            return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_nginx_answers_for_files_itself_and_compresses_them(proxied: str) -> None:
    ways = cycle(("gzip", "gzip", "gzip, deflate, br"))  # browsers differ
    for path in ("/static/js/index.js", "/app/static/scripts-1/page/slots.js") * 2 + (
        "/search?text=a",
    ) * 2:
        asks = urllib.request.Request(proxied + path, headers={"Accept-Encoding": next(ways)})
        with urllib.request.urlopen(asks, timeout=20) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"
            assert gzip.decompress(answer.read()).startswith(b"const nothing")
    assert Counter(Files.asked) == {
        "/static/js/index.js": 1,
        "/app/static/scripts-1/page/slots.js": 1,
        "/search?text=a": 2,
    }


def upgraded(stack: ExitStack, base: str, address: str) -> bytes:
    """The first line of what a web-socket from an address is answered; it stays open."""
    place = urlsplit(base)
    socket_ = stack.enter_context(
        socket.create_connection((place.hostname, place.port), 20, source_address=(address, 0))
    )
    lines = (
        f"GET /_stcore/stream HTTP/1.1\nHost: {place.netloc}\nConnection: Upgrade\nUpgrade: "
        "websocket\n\n"
    )
    socket_.sendall(lines.replace("\n", "\r\n").encode())
    return socket_.recv(1000).partition(b"\r\n")[0]


def test_an_address_with_too_many_web_sockets_is_refused_and_others_are_served(
    proxied: str,
) -> None:
    with ExitStack() as stack:
        got = Counter(upgraded(stack, proxied, "127.0.0.1") for _ in range(160))
        assert got[b"HTTP/1.1 101 Switching Protocols"] == 100
        assert got[b"HTTP/1.1 429 Too Many Requests"] == 60
        assert upgraded(stack, proxied, "127.0.0.2") == b"HTTP/1.1 101 Switching Protocols"


def test_more_than_a_page_asks_for_is_refused_before_it_is_sent(proxied: str) -> None:
    for path, mebibytes in (("/_stcore/upload_file/1/2", 52), ("/", 1)):
        connection = http.client.HTTPConnection(urlsplit(proxied).netloc, timeout=20)
        connection.putrequest("PUT", path)
        connection.putheader("Content-Length", str(mebibytes * 2**20))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()


@pytest.mark.parametrize(("version", "spoken"), [("TLSv1_1", False), ("TLSv1_2", True)])
def test_tls_is_at_least_of_version_1_2(proxied: str, version: str, spoken: bool) -> None:
    place = urlsplit(proxied)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the version that must be refused
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    with (
        socket.create_connection((place.hostname, (place.port or 0) + 1), 20) as plain,
        nullcontext() if spoken else pytest.raises(OSError, match=r"(?i)alert|protocol|reset"),
        context.wrap_socket(plain),
    ):
        pass
