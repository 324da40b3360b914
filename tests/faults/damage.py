"""Damage files of runs, studies and exports, and see whether anything wrong is believed.

Short in the tests, long in `scripts/soak`.
"""

import random
import shutil
import warnings
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest

import iqrl
from iqrl.errors import BadInput
from iqrl.experiments.integrity import check
from iqrl.experiments.study.directory import StudyDirectory
from iqrl.experiments.study.results import load_results, write_export
from iqrl.experiments.study.study import Study
from iqrl.experiments.study.work import run_unit
from iqrl.training import loop
from iqrl.training.run_directory import RunStore

SETTINGS = {"steps": 300, "period": 100, "seeds": 2, "learning_starts": 100, "target_period": 100, "buffer_size": 20}
CONTENT = {"settings": SETTINGS, "runs": [{"task": "CartPole-v0", "method": "dqn", "gamma": [0.9, 0.99]}]}


def make_originals(folder: Path) -> None:
    """folder/run, folder/study with two runs and folder/export."""
    every_period = {"CHECKPOINT_SECONDS": 0.0, "SAVING_SHARE": float("inf")}
    kept = {name: getattr(loop, name) for name in every_period}
    vars(loop).update(every_period)
    try:
        iqrl.train("CartPole-v0", "dqn", out=folder / "run", **SETTINGS)
        directory = StudyDirectory.create(folder / "study", Study("harmed", CONTENT))
        with directory.locked():
            for run in directory.study.runs.values():
                run_unit(directory.work_unit(run))
            directory.write_failures({"one": "it failed"})
    finally:
        vars(loop).update(kept)
    write_export([load_results(folder / "study")], folder / "export")


# Kinds of damage


def flip(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def replace(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    data[place] = (data[place] + chance.randrange(1, 256)) % 256


def truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def lose(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    del data[place : place + chance.randrange(1, 64)]


def zero(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    data[place : place + 512] = bytes(len(data[place : place + 512]))


def extend(data: bytearray, chance: random.Random) -> None:
    data += chance.randbytes(chance.randrange(1, 64))


def repeat(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    data[place:place] = data[place : place + chance.randrange(1, 64)]


DAMAGES = (flip, flip, flip, replace, truncate, lose, zero, extend, repeat)


# What must come of it


class Reader:
    """Reads a directory as commands do, and knows what it says undamaged."""

    def __init__(self, original: Path):
        self.original, self.is_run = original, (original / "run.json").exists()
        self.driver = loop.driver_of(RunStore.open(original).run) if self.is_run else None
        self.said = self.read(original)

    def read(self, path: Path) -> list:
        if not self.is_run:
            results = load_results(path)
            return [results.curves.to_dicts(), repr(results._replace(curves=None))]
        result = loop.load_result(RunStore.open(path), self.driver)
        arrays = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(result.agent_state)]
        return [result.metrics.to_dicts(), arrays, result.run]

    def verdict(self, path: Path, file: Path) -> str:
        """refused, or not touched by it; anything else is an error."""
        findings = check(path)
        found = [finding for finding in findings if finding.state != "intact"]
        assert found, f"iqrl check says nothing of {file}"
        for finding in found:
            assert_sentence(finding.text)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                said = self.read(path)
        except BadInput as error:
            refusal = str(error)
        else:
            refusal = ""
        if refusal:
            assert_sentence(refusal)
            assert file.name in refusal or file.parent.name in refusal, f"{refusal} does not name {file}"
            return "refused"
        if caught:
            assert "The checkpoint before it" in str(caught[0].message), caught[0].message
            assert file.name == "checkpoint.safetensors"
            return "the one before"
        # repr, since NaN is not equal to itself
        assert repr(said) == repr(self.said), f"{file} is damaged and believed"
        return "not touched by it"


def assert_sentence(text: str) -> None:
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < 700, text  # the command shortens it, paths of tests are long


def damage_files(originals: Path, folder: Path, count: int, seed: int) -> Counter:
    """So many damages, spread over all files of all directories; what came of them."""
    chance, outcomes = random.Random(seed), Counter()
    readers = [Reader(path) for path in sorted(originals.iterdir())]
    for number in range(count):
        reader = readers[number % len(readers)]
        path = folder / reader.original.name
        shutil.copytree(reader.original, path)
        file = chance.choice([file for file in sorted(path.rglob("*")) if file.is_file()])
        data = bytearray(before := file.read_bytes())
        while bytes(data) == before:
            chance.choice(DAMAGES)(data, chance)
        file.write_bytes(data)
        listed = {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}
        outcomes[reader.verdict(path, file)] += 1
        assert listed == {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}, "it was written to"
        shutil.rmtree(path)
    return outcomes


def damage_one_file_everywhere(original: Path, file: str, folder: Path, stride: int = 1) -> int:
    """Every byte of one file, one after the other; how many."""
    reader, path = Reader(original), folder / original.name
    shutil.copytree(original, path)
    data = (path / file).read_bytes()
    places = range(0, len(data), stride)
    for place in places:
        (path / file).write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        reader.verdict(path, path / file)
    shutil.rmtree(path)
    return len(places)


def swap_files(originals: Path, folder: Path) -> None:
    """Files of another run under the same names; each is refused."""
    runs = sorted((originals / "study" / "runs").iterdir())
    reader = Reader(runs[0])
    for name in ("metrics.parquet", "checkpoint.safetensors"):
        path = folder / runs[0].name
        shutil.copytree(runs[0], path)
        shutil.copy(runs[1] / name, path / name)
        with pytest.raises(BadInput, match="belongs to another run"):
            reader.read(path)
        shutil.rmtree(path)
