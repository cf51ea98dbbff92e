from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.cifar import load_cifar10, load_cifar100, verify_cifar10, verify_cifar100
from quadspike.data.cifar.layouts import CIFAR10, CIFAR100, PIXELS
from quadspike.data.cifar.load import read
from quadspike.data.cifar.places import Place
from tests.cifar_files import Mini, changed
from tests.real_data import SHARED, needs


@pytest.fixture(scope="module")
def ten():
    return Mini(CIFAR10)


@pytest.fixture(scope="module")
def hundred():
    return Mini(CIFAR100, per_class=1)


@pytest.fixture(autouse=True)
def small(monkeypatch, ten, hundred, request):
    if "real" not in request.fixturenames:
        monkeypatch.setattr("quadspike.data.cifar.load.CIFAR10", ten.layouts)
        monkeypatch.setattr("quadspike.data.cifar.load.CIFAR100", hundred.layouts)


def is_whole(mini, splits, column=0):
    for which, split in zip(("train", "test"), splits, strict=True):
        images = torch.from_numpy(mini.images[which]).view(-1, 3, 32, 32)
        assert torch.equal(split.inputs, images)
        assert split.labels.tolist() == mini.labels[which][:, column].tolist()
        assert split.inputs.is_contiguous()
        assert split.name.endswith(which)


@pytest.mark.parametrize("form", ["binary", "python"])
@pytest.mark.parametrize("kind", ["folder", "loose", "archive", "dotted archive"])
def test_every_published_form_is_read(ten, hundred, tmp_path, form, kind):
    for mini in (ten, hundred):
        layout = mini.layout(form)
        root = tmp_path / layout.title
        root.mkdir()
        if kind == "folder":
            mini.unpack(root / layout.folder, form)
        elif kind == "loose":
            mini.unpack(root, form)
        else:
            mini.pack(root / layout.archive, form, prefix="./" if "dot" in kind else "")
    is_whole(ten, load_cifar10(tmp_path / "CIFAR-10"))
    is_whole(hundred, load_cifar100(tmp_path / "CIFAR-100"), column=1)
    is_whole(hundred, load_cifar100(tmp_path / "CIFAR-100", labels="coarse"), column=0)
    assert verify_cifar10(tmp_path / "CIFAR-10").whole
    assert verify_cifar100(tmp_path / "CIFAR-100").whole


def test_the_classes_have_their_names(ten, hundred, tmp_path):
    ten.unpack(tmp_path / CIFAR10[0].folder, "binary")
    hundred.unpack(tmp_path / CIFAR100[0].folder, "binary")
    assert load_cifar10(tmp_path)[0].classes[:4] == ("airplane", "automobile", "bird", "cat")
    fine = load_cifar100(tmp_path)[1].classes
    assert (len(fine), fine[0], fine[99]) == (100, "apple", "worm")
    coarse = load_cifar100(tmp_path, labels="coarse")[1].classes
    assert (len(coarse), coarse[0], coarse[19]) == (20, "aquatic_mammals", "vehicles_2")
    with pytest.raises(QuadspikeError, match="unknown kind of labels 'fein'; did you mean 'fine'"):
        load_cifar100(tmp_path, labels="fein")


def test_the_root_may_come_from_the_environment(ten, tmp_path, monkeypatch):
    ten.unpack(tmp_path, "binary")
    monkeypatch.setenv("QUADSPIKE_DATA", str(tmp_path))
    is_whole(ten, load_cifar10())


def test_an_incomplete_folder_is_passed_over_for_a_whole_archive(ten, tmp_path):
    (ten.unpack(tmp_path / CIFAR10[0].folder, "binary") / "test_batch.bin").unlink()
    ten.pack(tmp_path / CIFAR10[1].archive, "python")
    is_whole(ten, load_cifar10(tmp_path))
    assert "the python files in" in verify_cifar10(tmp_path).found


def test_what_is_missing_is_said(ten, tmp_path):
    with pytest.raises(QuadspikeError) as caught:
        load_cifar10(tmp_path)
    ways = ("--data FOLDER", "quadspike data download cifar10`", "cifar-10-binary.tar.gz")
    for part in (str(tmp_path), *ways, "170,052,171", CIFAR10[0].md5):
        assert part in str(caught.value)
    (ten.unpack(tmp_path / CIFAR10[0].folder, "binary") / "data_batch_3.bin").unlink()
    with pytest.raises(QuadspikeError, match=r"batches-bin lacks data_batch_3\.bin"):
        load_cifar10(tmp_path)
    report = verify_cifar10(tmp_path)
    found = f"some of the files in {tmp_path / CIFAR10[0].folder}"
    assert (report.name, report.found, report.whole) == ("cifar10", found, False)
    assert "lacks data_batch_3.bin" in report.problem


RECORD = PIXELS + 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: b"", r"0 bytes where 20 records of 3073 make 61,460"),
        (lambda raw: raw[: 2 * RECORD + 5], r"record 2 breaks off at byte 6,146"),
        (lambda raw: raw[: 3 * RECORD], r"9,219 bytes where 20 records"),
        (lambda raw: raw + b"x", r"61,461 bytes where .*record 20 breaks off at byte 61,460"),
        (lambda raw: changed(raw, 4 * RECORD, 10), r"label at byte 12,292 \(record 4\) is 10"),
        (lambda raw: changed(raw, 9, raw[9] ^ 1), r"SHA-1 .*but the published file has"),
        (lambda raw: changed(raw, 0, (raw[0] + 1) % 10), r"SHA-1 .*but the published file has"),
    ],
)
def test_a_damaged_binary_file_is_named(ten, tmp_path, damage, message):
    file = ten.unpack(tmp_path / CIFAR10[0].folder, "binary") / "data_batch_2.bin"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(QuadspikeError, match=rf"data_batch_2\.bin: .*{message}"):
        load_cifar10(tmp_path)
    report = verify_cifar10(tmp_path)
    assert not report.whole
    assert "data_batch_2.bin" in report.problem
    assert str(file.parent) in report.found


def test_the_second_label_of_a_record_is_checked_as_well(hundred, tmp_path):
    file = hundred.unpack(tmp_path / CIFAR100[0].folder, "binary") / "test.bin"
    file.write_bytes(changed(file.read_bytes(), 3 * (PIXELS + 2) + 1, 100))
    with pytest.raises(QuadspikeError, match=r"byte 9,223 \(record 3\) is 100, .* 0\.\.99"):
        load_cifar100(tmp_path)


@pytest.mark.parametrize("damage", [lambda raw: b"", lambda raw: raw[:999], lambda raw: raw + b"x"])
def test_a_pickle_other_than_the_published_is_not_unpickled(ten, tmp_path, damage, monkeypatch):
    file = ten.unpack(tmp_path / CIFAR10[1].folder, "python") / "data_batch_1"
    file.write_bytes(damage(file.read_bytes()))
    monkeypatch.setattr("quadspike.data.cifar.records.read_pickle", None)
    with pytest.raises(QuadspikeError, match=r"data_batch_1: .*MD5 .*but the published file has"):
        load_cifar10(tmp_path)


def test_classes_of_unequal_size_are_refused(ten, tmp_path):
    layout = ten.layout("binary")
    raw = changed(ten.files["binary", "test_batch.bin"], 0, 3)
    raw = changed(raw, RECORD, 3)
    part = replace(layout.test[0], digest=hashlib.sha1(raw).hexdigest())
    folder = ten.unpack(tmp_path / layout.folder, "binary")
    (folder / "test_batch.bin").write_bytes(raw)
    with pytest.raises(
        QuadspikeError, match=r"batches-bin, test: 'labels' \d occurs \d times, and"
    ):
        read(Place(replace(layout, test=(part,)), folder))


def test_broken_archives_are_named(ten, tmp_path):
    archive = tmp_path / CIFAR10[0].archive
    whole = ten.pack(archive, "binary").read_bytes()
    for damage in (b"", b"no archive", whole[: len(whole) // 2], whole[:-40_000]):
        archive.write_bytes(damage)
        with pytest.raises(
            QuadspikeError, match=r"cifar-10-binary\.tar\.gz: the archive is broken"
        ):
            load_cifar10(tmp_path)
    middle = len(whole) // 2
    archive.write_bytes(changed(whole, middle, whole[middle] ^ 255))
    with pytest.raises(QuadspikeError, match=r"cifar-10-binary\.tar\.gz"):
        load_cifar10(tmp_path)
    ten.pack(archive, "binary", without=["data_batch_4.bin"])
    with pytest.raises(QuadspikeError, match=r"holds no cifar-10-batches-bin/data_batch_4\.bin"):
        load_cifar10(tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_link_or_a_folder_in_an_archive_is_not_the_file_of_its_name(ten, tmp_path, kind):
    whole = ten.pack(tmp_path / CIFAR10[0].archive, "binary")
    with tarfile.open(whole) as archive:
        members = [(member, archive.extractfile(member).read()) for member in archive]
    name = f"{CIFAR10[0].folder}/data_batch_4.bin"
    other = tarfile.TarInfo(name)
    other.type, other.linkname = kind, f"{CIFAR10[0].folder}/data_batch_1.bin"

    def repack(keep):
        with tarfile.open(whole, "w:gz") as archive:
            archive.addfile(other)
            for member, raw in members:
                if keep or member.name != name:
                    archive.addfile(member, io.BytesIO(raw))

    repack(keep=True)
    assert torch.equal(
        load_cifar10(tmp_path)[0].inputs.flatten(1), torch.from_numpy(ten.images["train"])
    )
    repack(keep=False)
    with pytest.raises(QuadspikeError, match=r"holds no cifar-10-batches-bin/data_batch_4\.bin"):
        load_cifar10(tmp_path)


def test_an_archive_s_own_checksum_tells_it_from_a_repacked_one(ten, tmp_path, monkeypatch):
    archive = ten.pack(tmp_path / CIFAR10[0].archive, "binary")
    assert verify_cifar10(tmp_path).found.endswith("a repacked archive")
    layout = replace(ten.layouts[0], md5=hashlib.md5(archive.read_bytes()).hexdigest())
    monkeypatch.setattr("quadspike.data.cifar.load.CIFAR10", (layout,))
    assert verify_cifar10(tmp_path).found.endswith("the published archive")


@pytest.fixture
def site(ten, tmp_path, monkeypatch):
    """The archives' page, on the loopback."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "site"
    folder.mkdir()
    archive = ten.pack(folder / CIFAR10[0].archive, "binary")
    raw = archive.read_bytes()
    layout = replace(ten.layouts[0], size=len(raw), md5=hashlib.md5(raw).hexdigest())

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    page = f"http://127.0.0.1:{server.server_address[1]}/"
    monkeypatch.setattr("quadspike.data.cifar.layouts._PAGE", page)
    monkeypatch.setattr("quadspike.data.cifar.load.CIFAR10", (layout, ten.layouts[1]))
    yield archive
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_is_not_there_is_downloaded_once(ten, site, tmp_path):
    told = []
    root = tmp_path / "root"
    splits = load_cifar10(root, download=True, progress=lambda *now: told.append(now))
    is_whole(ten, splits)
    assert told[-1][0] == told[-1][1] == site.stat().st_size
    site.unlink()
    is_whole(ten, load_cifar10(root, download=True))


def test_a_download_that_fails_says_what_to_put_where(site, tmp_path):
    site.unlink()
    with pytest.raises(QuadspikeError, match=r"status 404.*put cifar-10-binary\.tar\.gz"):
        load_cifar10(tmp_path / "root", download=True)


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    root = tmp_path_factory.mktemp("cifar")
    command = [sys.executable, str(SHARED / "cifar10" / "unpack.py"), str(root)]
    subprocess.run(command, check=True, capture_output=True)
    return root


@needs("cifar10")
def test_the_real_cifar10_is_what_it_is_known_to_be(real):
    train, test = load_cifar10(real)
    assert (len(train), len(test)) == (50_000, 10_000)
    assert [train.classes[i] for i in train.labels[:5]] == [
        "frog", "truck", "truck", "deer", "automobile",
    ]  # fmt: skip
    assert [test.classes[i] for i in test.labels[:4]] == ["cat", "ship", "ship", "airplane"]
    assert train.inputs[0, :, 0, 0].tolist() == [59, 62, 63]
    assert test.inputs[0, :, 0, 0].tolist() == [158, 112, 49]
    mean = train.inputs.sum((0, 2, 3)) / (255 * 50_000 * 32 * 32)
    assert mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)
    report = verify_cifar10(real)
    assert (report.whole, report.problem) == (True, "")
