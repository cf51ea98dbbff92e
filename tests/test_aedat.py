from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quadspike import QuadspikeError
from quadspike.data.events.aedat import format_aedat, parse_aedat, read_aedat, write_aedat
from quadspike.data.events.form import Events
from quadspike.data.events.statistics import statistics
from tests.event_files import recording
from tests.real_data import SHARED, needs

RECORDINGS = SHARED / "events" / "dvs128"
HEADER = b"#!AER-DAT2.0\r\n# made by hand\r\n"


def records(*pairs):
    return b"".join(struct.pack(">II", address, time) for address, time in pairs)


def address(x_raw, y_raw, bit=0):
    return y_raw << 8 | x_raw << 1 | bit


def parsed(*pairs, header=HEADER, **options):
    return parse_aedat(header + records(*pairs), "hand.aedat", **options)


def same(a, b):
    assert (a.width, a.height) == (b.width, b.height)
    for name in "txyp":
        assert torch.equal(getattr(a, name), getattr(b, name)), name


def test_the_bits_of_a_record():
    events = parsed((address(0, 0, 0), 5), (address(127, 0, 1), 6), (address(3, 100, 0), 6))
    assert events.t.tolist() == [5, 6, 6]
    assert events.x.tolist() == [127, 0, 124]
    assert events.y.tolist() == [127, 127, 27]
    assert events.p.tolist() == [1, 0, 1]
    events.check()


def test_a_camera_on_its_side_is_turned_a_quarter_clockwise():
    pairs = [(address(10, 20), 0), (address(90, 3), 1)]
    upright = parsed(*pairs)
    sideways = parsed(*pairs, camera="sideways")
    # Clockwise, the top of a picture becomes its right: column 127 - row, row = column.
    assert torch.equal(sideways.x, 127 - upright.y)
    assert torch.equal(sideways.y, upright.x)


@pytest.mark.parametrize("camera", ["upright", "sideways"])
def test_what_is_written_reads_back_the_same(tmp_path, camera):
    events = recording(0, 500, end=2**32)
    write_aedat(events, tmp_path / "a" / "b.aedat", ["one comment", ""], camera)
    same(read_aedat(tmp_path / "a" / "b.aedat"), events)
    # The file itself says how the camera stood, whatever the reader supposes.
    same(read_aedat(tmp_path / "a" / "b.aedat", camera="sideways"), events)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.aedat"]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 - 1), *[st.integers(0, 127)] * 2, st.integers(0, 1)),
        min_size=1,
    )
)
def test_any_recording_survives_a_file(rows):
    t, x, y, p = zip(*sorted(rows), strict=True)
    events = Events.of(t, x, y, p, width=128, height=128)
    same(parse_aedat(format_aedat(events, "any"), "any"), events)


def test_data_that_looks_like_a_header_is_data_after_jaers_last_line():
    line = b"#End Of ASCII Header\r\n"
    odd = records((0x00230D0A, 0))  # the bytes of '#' CR LF, in an address no DVS128 has
    with pytest.raises(
        QuadspikeError, match=f"byte {len(HEADER + line)} has the address 0x00230d0a"
    ):
        parse_aedat(HEADER + line + odd, "odd.aedat")
    with pytest.raises(QuadspikeError, match="0x23232323"):
        parse_aedat(HEADER + line + b"####\r\n##", "odd.aedat")


def test_a_record_that_begins_with_a_hash_is_no_dvs128_record():
    with pytest.raises(QuadspikeError, match=f"byte {len(HEADER)} is no line"):
        parse_aedat(HEADER + struct.pack(">II", 0x23010203, 7), "odd.aedat")


@pytest.mark.parametrize("time", [0x0D0A0D0A, 0x230D0A23, 0x23202020])
def test_bytes_of_lines_inside_the_data_change_nothing(time):
    events = parsed((address(1, 2), time), (address(16, 13), time))
    assert events.t.tolist() == [time, time]


def test_letters_beyond_ascii_in_the_header_are_no_data():
    header = HEADER + "# User name: José\r\n".encode("latin-1")
    assert len(parsed((address(1, 2), 3), header=header)) == 1


def test_special_events_are_dropped_but_carry_the_clock():
    found = parsed((address(1, 2), 2**32 - 5), (0x8000, 1), (0x80000000, 2), (address(1, 2), 9))
    assert found.t.tolist() == [2**32 - 5, 2**32 + 9]


@pytest.mark.parametrize("backwards", ["error", "sort", "unwrap"])
def test_the_clock_may_wrap_around(backwards):
    times = [2**32 - 3, 2**32 - 1, 4, 2**31, 2**32 - 2, 1]
    found = parsed(*[(address(0, 0), t) for t in times], backwards=backwards)
    expected = [2**32 - 3, 2**32 - 1, 2**32 + 4, 2**32 + 2**31, 2**33 - 2, 2**33 + 1]
    assert found.t.tolist() == expected


def test_a_long_silence_is_no_wrap():
    assert parsed((0, 0), (0, 2**32 - 1)).t.tolist() == [0, 2**32 - 1]


def test_time_running_backwards():
    pairs = [(address(0, 0), 10), (address(1, 0), 50), (address(2, 0), 20), (address(3, 0), 30)]
    with pytest.raises(QuadspikeError, match=f"backwards at byte {len(HEADER) + 16}: 50 then 20"):
        parsed(*pairs)
    ordered = parsed(*pairs, backwards="sort")
    assert ordered.t.tolist() == [10, 20, 30, 50]
    assert (127 - ordered.x).tolist() == [0, 2, 3, 1]
    assert parsed(*pairs, backwards="unwrap").t.tolist() == [10, 50, 50, 60]


def test_a_late_event_beside_a_wrap_is_late_not_a_new_turn():
    pairs = [(0, 2**32 - 9), (0, 5), (0, 2**32 - 2), (0, 8)]
    with pytest.raises(QuadspikeError, match="backwards"):
        parsed(*pairs)
    found = parsed(*pairs, backwards="sort")
    assert found.t.tolist() == [2**32 - 9, 2**32 - 2, 2**32 + 5, 2**32 + 8]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an AEDAT file"),
        (b"PK\x03\x04", "not an AEDAT file: begins with b'PK"),
        (b"#!AER-DAT3.1\r\n#Format: RAW\r\n", "AEDAT version '3.1'.*only 2.0"),
        (b"#!AER-DAT4.0\r\n", "AEDAT version '4.0'"),
        (b"#!AER-DAT1.0\r\n", "AEDAT version '1.0'"),
        (b"#!AER-DAT2.0\n" + bytes(8), "broken header.*byte 0 is no line"),
        (HEADER, "no events"),
        (HEADER + bytes(12), "cut short: 12 bytes of records after byte 30"),
        (HEADER + b"# a line cut" + bytes(4), "broken header.*byte 30"),
        (HEADER + records((0x8000, 1)), "no events.*1 special"),
        (HEADER + records((0, 1), (0x10000, 2)), "byte 38 has the address 0x00010000"),
    ],
)
def test_what_is_no_recording_is_named(data, message):
    with pytest.raises(QuadspikeError, match=message) as caught:
        parse_aedat(data, "some.aedat")
    assert "some.aedat" in str(caught.value)


def test_bad_options_and_missing_files(tmp_path):
    with pytest.raises(QuadspikeError, match="did you mean 'sort'"):
        parsed((0, 0), backwards="sorted")
    with pytest.raises(QuadspikeError, match="camera"):
        parsed((0, 0), camera="down")
    with pytest.raises(QuadspikeError, match="No such file"):
        read_aedat(tmp_path / "none.aedat")
    with pytest.raises(QuadspikeError, match="directory"):
        read_aedat(tmp_path)


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path):
    def refused(message, comments=(), **fields):
        row = {"t": [1], "x": [1], "y": [1], "p": [1], "width": 128, "height": 128, **fields}
        with pytest.raises(QuadspikeError, match=message):
            write_aedat(Events.of(**row), tmp_path / "x.aedat", comments)

    refused("128 x 128 pixels, got 34 x 34", width=34, height=34)
    refused("no events", t=[], x=[], y=[], p=[])
    refused("times must lie", t=[-1])
    refused("times must lie", t=[2**32])
    refused("one line of ASCII", comments=["two\r\nlines"])
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(QuadspikeError, match="cannot make the folder"):
        write_aedat(recording(0), tmp_path / "file" / "x.aedat")


@needs("events/dvs128")
@pytest.mark.parametrize(
    ("name", "count", "seconds"),
    [
        ("Caixa", 201523, 18.491949),
        ("Lapiseira", 126164, 18.507653),
        ("Tesoura", 143655, 18.762697),
    ],
)
def test_real_recordings(name, count, seconds):
    events = read_aedat(RECORDINGS / f"DataSet2_{name}.aedat")
    events.check()
    found = statistics(events)
    assert found.events == count
    assert found.seconds == pytest.approx(seconds)
    assert 0.5 < found.on / found.events < 0.6
    assert found.interval_mean_us == pytest.approx(seconds * 1e6 / (count - 1))
    same(parse_aedat(format_aedat(events, name), name), events)


@needs("events/dvs128")
def test_the_table_is_seen_from_above_with_its_near_side_below():
    """A pencil turns on a table seen at a slant: its circle is flattened from top to bottom, and
    its half towards us looks longer whichever end it is. That settles which way is up."""
    events = read_aedat(RECORDINGS / "DataSet2_Lapiseira.aedat")
    windows = []
    for start in range(0, len(events) - 4000, 1000):
        x, y = events.x[start : start + 4000].double(), events.y[start : start + 4000].double()
        # Background noise is thin: the pencil is where a coarse histogram is dense.
        cells = (y // 8 * 16 + x // 8).long()
        dense = torch.bincount(cells, minlength=256)[cells] > 40
        windows.append((x[dense], y[dense]))
    lying = min(windows, key=lambda window: window[1].std())
    standing = min(windows, key=lambda window: window[0].std())
    length = lying[0].quantile(0.98) - lying[0].quantile(0.02)
    height = standing[1].quantile(0.98) - standing[1].quantile(0.02)
    assert length > 1.4 * height
    pivot = lying[1].median()
    for x, y in windows:
        if x.std() < 1.15 * standing[0].std():
            below, above = y.quantile(0.98) - pivot, pivot - y.quantile(0.02)
            assert below > 1.15 * above
