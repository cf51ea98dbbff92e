from __future__ import annotations

import hashlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from quadspike import QuadspikeError
from quadspike.cli.bar import progress_bar
from quadspike.data import download
from quadspike.data.download import fetch
from quadspike.data.root import data_root

BODY = bytes(range(256)) * 4096
MD5 = hashlib.md5(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves BODY on the loopback, with the faults it is told to have."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = BODY
        self.ranges = True
        self.drop_after: list[int] = []
        self.statuses: list[int] = []
        self.length: int | None = None
        self.asked: list[str | None] = []
        self.together = threading.Barrier(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        asked = self.headers.get("Range")
        server.asked.append(asked)
        with suppress(threading.BrokenBarrierError):
            server.together.wait(0.5)
        if server.statuses:
            self.send_error(server.statuses.pop(0))
            return
        start = int(re.match(r"bytes=(\d+)-$", asked)[1]) if asked and server.ranges else 0
        if start >= len(server.body) > 0 and start:
            self.send_error(416)
            return
        body = server.body[start:]
        self.send_response(206 if start else 200)
        if start:
            last, total = len(server.body) - 1, len(server.body)
            self.send_header("Content-Range", f"bytes {start}-{last}/{total}")
        self.send_header("Content-Length", str(server.length or len(body)))
        self.end_headers()
        self.wfile.write(body[: server.drop_after.pop(0)] if server.drop_after else body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def get(server, target, **changed):
    arguments = {"size": len(BODY), "md5": MD5, **changed}
    return fetch(server.url, target, **arguments)


def part_of(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def test_a_file_arrives_whole_and_its_progress_is_told(server, tmp_path):
    told = []
    target = tmp_path / "new" / "file.bin"
    assert get(server, target, progress=lambda *now: told.append(now)) == target
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]
    assert told[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_what_is_there_already_is_not_fetched_again(server, tmp_path):
    (tmp_path / "file.bin").write_bytes(BODY)
    get(server, tmp_path / "file.bin")
    assert server.asked == []


@pytest.mark.parametrize("content", [b"mine", bytes(len(BODY))])
def test_a_wrong_file_of_that_name_is_not_overwritten(server, tmp_path, content):
    target = tmp_path / "file.bin"
    target.write_bytes(content)
    with pytest.raises(QuadspikeError, match=r"file\.bin: it.*delete it"):
        get(server, target)
    assert target.read_bytes() == content
    assert server.asked == []


def test_several_processes_fetch_a_file_once(server, tmp_path):
    target = tmp_path / "file.bin"
    server.together = threading.Barrier(2)
    with ThreadPoolExecutor(2) as several:
        found = list(several.map(lambda _: get(server, target), range(2)))
    assert found == [target] * 2
    assert target.read_bytes() == BODY
    assert server.asked == [None]


def test_a_partial_file_is_resumed(server, tmp_path):
    target = tmp_path / "file.bin"
    part_of(target).write_bytes(BODY[:1000])
    get(server, target)
    assert target.read_bytes() == BODY
    assert server.asked == ["bytes=1000-"]


def test_a_whole_partial_file_needs_no_server(server, tmp_path):
    target = tmp_path / "file.bin"
    part_of(target).write_bytes(BODY)
    get(server, target)
    assert server.asked == []
    assert target.read_bytes() == BODY


@pytest.mark.parametrize("stale", [b"x" * 1000, b"x" * len(BODY), b"x" * (len(BODY) + 5)])
def test_a_stale_partial_file_is_given_up(server, tmp_path, stale):
    target = tmp_path / "file.bin"
    part_of(target).write_bytes(stale)
    get(server, target)
    assert target.read_bytes() == BODY
    assert server.asked[-1] is None


def test_a_server_that_ignores_ranges_is_read_from_the_start(server, tmp_path):
    server.ranges = False
    target = tmp_path / "file.bin"
    part_of(target).write_bytes(BODY[:1000])
    get(server, target)
    assert target.read_bytes() == BODY


def test_a_refused_range_starts_afresh(server, tmp_path):
    server.statuses = [416]
    target = tmp_path / "file.bin"
    part_of(target).write_bytes(BODY[:1000])
    get(server, target)
    assert server.asked == ["bytes=1000-", None]


def test_a_dropped_connection_goes_on_where_it_broke_off(server, tmp_path):
    server.drop_after = [5000, 300_000, 0, 7]
    get(server, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY
    starts = ["bytes=5000-", "bytes=305000-", "bytes=305000-", "bytes=305007-"]
    assert server.asked == [None, *starts]


def test_a_connection_that_keeps_dropping_fails_and_keeps_what_came(server, tmp_path):
    server.drop_after = [5000, 0, 0, 0, 0]
    target = tmp_path / "file.bin"
    with pytest.raises(QuadspikeError, match=r"kept dropping.*goes on from byte 5,000"):
        get(server, target)
    assert not target.exists()
    assert part_of(target).read_bytes() == BODY[:5000]
    server.drop_after = []
    get(server, target)
    assert target.read_bytes() == BODY


def test_a_server_s_bad_moment_is_waited_out(server, tmp_path):
    server.statuses = [503, 500]
    get(server, tmp_path / "file.bin")
    assert len(server.asked) == 3


def test_a_missing_file_fails_at_once(server, tmp_path):
    server.statuses = [404]
    with pytest.raises(QuadspikeError, match="status 404"):
        get(server, tmp_path / "file.bin")
    assert len(server.asked) == 1


@pytest.mark.parametrize("resumed", [b"", BODY[:1000]])
def test_wrong_bytes_are_removed(server, tmp_path, resumed):
    server.body = BODY[:-1] + b"?"
    target = tmp_path / "file.bin"
    if resumed:
        part_of(target).write_bytes(resumed)
    with pytest.raises(QuadspikeError, match=rf"MD5 is .*, not {MD5}; what came was rem"):
        get(server, target)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("body", [b"<html>not found</html>", BODY + b"more", b""])
def test_a_file_of_another_size_is_refused_before_it_comes(server, tmp_path, body):
    server.body = body
    with pytest.raises(QuadspikeError, match=rf"offers {len(body)} bytes, not {len(BODY)}"):
        get(server, tmp_path / "file.bin")
    assert list(tmp_path.iterdir()) == []


def test_a_length_that_lies_does_not_pass(server, tmp_path):
    server.body = BODY[:-10]
    server.length = len(BODY)
    target = tmp_path / "file.bin"
    with pytest.raises(QuadspikeError):
        get(server, target)
    assert not target.exists()


def test_without_a_network_it_says_what_to_put_where(server, tmp_path):
    port = server.server_address[1]
    server.shutdown()
    server.server_close()
    with pytest.raises(QuadspikeError) as caught:
        fetch(f"http://127.0.0.1:{port}/x", tmp_path / "file.bin", size=1_234_567, md5=MD5)
    message = str(caught.value)
    for part in ("file.bin", "1,234,567 bytes", f"MD5 {MD5}", str(tmp_path), "by hand"):
        assert part in message


def test_a_folder_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(QuadspikeError, match=r"cannot make the folder .*taken"):
        get(server, tmp_path / "taken" / "file.bin")


def test_a_bar_takes_progress(capsys):
    with progress_bar("file.bin", of_bytes=True) as told:
        told(1, 2)
        told(2, 2)
    assert "file.bin" in capsys.readouterr().err
    with progress_bar("file.bin"):
        pass
    assert not capsys.readouterr().err


def test_the_root_is_the_given_folder_then_the_variable_then_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("QUADSPIKE_DATA", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root(tmp_path) == tmp_path
    assert data_root() == tmp_path / "named"
    monkeypatch.setenv("QUADSPIKE_DATA", "~/data")
    assert data_root() == Path.home() / "data"
    monkeypatch.setenv("QUADSPIKE_DATA", "")
    assert data_root() == tmp_path / "cache" / "quadspike" / "data"
    for ignored in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert data_root() == Path.home() / ".cache" / "quadspike" / "data"
