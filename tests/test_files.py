"""Files are written whole, sealed, read with care; nothing but a file is ever replaced."""

import contextlib
import fcntl
import json
import os
import stat

import polars as pl
import pytest

from iqrl.errors import BadInput
from iqrl.files import (
    PIECE,
    UNSEALED,
    Damaged,
    is_sealed,
    new_directory,
    read_bytes,
    read_json,
    read_table,
    seal,
    sweep,
    table_bytes,
    write_json,
    write_whole,
)

TABLE = pl.DataFrame({"seed": [0, 1], "step": [5, 5], "return": [1.0, 2.0]})


def write_table(path):
    write_whole(path, *table_bytes("metrics", TABLE, {"run": "abc"}))


def test_a_file_is_replaced_whole_and_the_old_one_can_be_kept(tmp_path):
    file, before = tmp_path / "a", tmp_path / "before"
    write_whole(file, b"one", b"", b" and two")
    assert file.read_bytes() == b"one and two"
    write_whole(file, b"three", keep=before)
    assert (file.read_bytes(), before.read_bytes()) == (b"three", b"one and two")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "before"]


def test_a_failure_leaves_the_old_content_and_no_scratch(tmp_path, monkeypatch):
    file = tmp_path / "a"
    write_whole(file, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_not_a_file_is_written_to_or_refused_and_never_replaced(tmp_path):
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, b"said")
    assert os.read(reader, 10) == b"said"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    for path, words in ((pipe, "No such device"), (folder, "is a directory"), (link, "is a link")):
        with pytest.raises(OSError, match=words):
            write_whole(path, b"x")
    assert link.is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_a_device_is_not_replaced():
    from pathlib import Path

    before = os.stat("/dev/null").st_rdev
    write_whole(Path("/dev/null"), b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert os.stat("/dev/null").st_rdev == before
    with pytest.raises(OSError, match="No space"):
        write_whole(Path("/dev/full"), b"x")


def test_leftovers_of_the_dead_are_swept_and_nothing_else(tmp_path):
    dead, living, folder = (tmp_path / f".iqrl-{digit * 16}.tmp" for digit in "0ab")
    for path in (dead, living, tmp_path / ".metrics.parquet.123", tmp_path / "run.json"):
        path.write_text("x")
    for path in (folder, tmp_path / ".mine.2024"):
        path.mkdir()
        (path / "inside").write_text("x")
    with open(living) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        sweep(tmp_path)
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == [living.name, ".metrics.parquet.123", ".mine.2024", "run.json"]
    sweep(tmp_path)
    assert not living.exists()
    sweep(tmp_path / "none")


def test_a_link_with_the_name_of_a_leftover_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("x")
    (tmp_path / f".iqrl-{'0' * 16}.tmp").symlink_to(tmp_path / "mine")
    sweep(tmp_path)
    assert (tmp_path / "mine").read_text() == "x"


def test_a_directory_has_its_name_when_it_is_complete(tmp_path):
    def fill_half():
        with new_directory(tmp_path / "a") as scratch:
            (scratch / "half").write_text("x")
            raise KeyError

    with pytest.raises(KeyError):
        fill_half()
    assert list(tmp_path.iterdir()) == []
    with new_directory(tmp_path / "a") as scratch:
        (scratch / "whole").write_text("x")
        sweep(tmp_path)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["whole"]


@pytest.mark.parametrize("write", [write_table, lambda path: write_json(path, "run", {"config": {"gamma": 0.5}})])
def test_every_changed_byte_is_seen(tmp_path, write):
    file = tmp_path / "file"
    write(file)
    data = file.read_bytes()
    kind = "metrics" if write is write_table else "run"
    assert is_sealed(file, data, kind)
    for place in range(len(data)):
        for changed in (data[place] ^ 1, data[place] ^ 0x80, 0):
            if changed != data[place]:
                damaged = data[:place] + bytes([changed]) + data[place + 1 :]
                with pytest.raises(Damaged):
                    assert is_sealed(file, damaged, kind), "it was taken for a file of an earlier version"
        with pytest.raises(Damaged):
            assert is_sealed(file, data[:place] + data[place + 1 :], kind)


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_json(tmp_path / "run.json", "run", {})
    with pytest.raises(Damaged, match="not a file of the kind study"):
        read_json(tmp_path / "run.json", "study")


def test_large_files_are_hashed_in_pieces(tmp_path):
    data = b"x" * (2 * PIECE) + UNSEALED.encode() + b" iqrl-sealed-big " + b"y" * (1 << 18)
    sealed = bytearray(b"".join(seal(data)))
    assert is_sealed(tmp_path, sealed, "big")
    for place in (0, PIECE, 2 * PIECE - 1, len(sealed) - 1):
        sealed[place] ^= 1
        with pytest.raises(Damaged):
            is_sealed(tmp_path, sealed, "big")
        sealed[place] ^= 1


def test_files_of_earlier_versions_are_read(tmp_path):
    (tmp_path / "old.json").write_text('{"config": 1}')
    assert read_json(tmp_path / "old.json", "run") == {"config": 1}
    TABLE.write_parquet(tmp_path / "old.parquet")
    assert read_table(tmp_path / "old.parquet", "metrics").table.equals(TABLE)
    write_table(tmp_path / "new.parquet")
    read = read_table(tmp_path / "new.parquet", "metrics")
    assert (read.table.equals(TABLE), read.names) == (True, {"run": "abc"})
    assert pl.read_parquet(tmp_path / "new.parquet").equals(TABLE), "others read it too"


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "not valid JSON"), ("[1]", "names and values"), ("[" * 100_000, "not valid JSON"), ("9" * 5000, "JSON")],
)
def test_json_that_is_none(tmp_path, text, words):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(Damaged, match=words):
        read_json(tmp_path / "a.json", "run")


def test_parquet_that_is_none_is_a_sentence_and_nothing_is_printed(tmp_path, capfd):
    """Every byte of a file without a seal; polars panics at some of them, which would be printed."""
    file = tmp_path / "a.parquet"
    TABLE.write_parquet(file)
    data = file.read_bytes()
    for place in range(0, len(data), 3):
        file.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        with contextlib.suppress(Damaged):
            read_table(file, "metrics")
    assert capfd.readouterr().err == ""


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="not a regular file"):
        read_bytes(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 11)
    with pytest.raises(BadInput, match="has 11 bytes; it may have 10"):
        read_bytes(tmp_path / "large", 10)


def test_marks_are_first_and_last(tmp_path):
    write_json(tmp_path / "a.json", "run", {"config": {}})
    assert list(json.loads((tmp_path / "a.json").read_text())) == ["format", "config", "checksum"]
