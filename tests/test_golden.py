"""Runs have the same bits as when they were recorded, and studies the same runs."""

import json
import os

import pytest
from golden import recording

from iqrl.envs.registry import TASKS
from iqrl.experiments.study.study import catalogue
from iqrl.methods.registry import METHODS

CASES = recording.cases()
RECORDED = json.loads(recording.FILE.read_text()).get(recording.processor())
IDENTITIES = json.loads(recording.FILE.with_name("identities.json").read_text())
ON_IMAGES = ("dqn images N=100", "iq-re images N=1", "rainbow-iq-re images N=100")
WITHOUT_REPLAY = ("dqn N=1", "iq N=1", "stream-q N=1")
LONG = {name for name in CASES if METHODS[CASES[name][1]].covered_by or "images" in name or name.endswith("N=1")}
LEFT_OUT = set() if "IQRL_ALL_DIGESTS" in os.environ else LONG - {*ON_IMAGES, *WITHOUT_REPLAY}
CHOSEN = [name for name in CASES if name not in LEFT_OUT]
"""IQRL_ALL_DIGESTS=1: also methods that consist of parts of others, all images and all without replay"""

needs_record = pytest.mark.skipif(
    RECORDED is None, reason="no digests for this kind of processor; tests/golden/recording.py records them"
)


@needs_record
@pytest.mark.parametrize("name", CHOSEN)
def test_a_run_has_the_bits_that_it_had(name):
    found = recording.digests(*CASES[name])
    assert {part: found[part] for part in RECORDED[name]} == RECORDED[name]


@needs_record
@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_the_states_that_it_had(task):
    assert recording.task_digest(task) == RECORDED[f"task {task}"]["states"]


def test_every_recorded_case_is_still_one():
    assert RECORDED is None or set(RECORDED) == {*CASES, *(f"task {task}" for task in TASKS)}


@pytest.mark.parametrize("study", IDENTITIES)
def test_a_study_has_the_runs_that_it_had(study):
    """By identity: a study in results/ is found again, and a finished run is not trained anew."""
    found = [[planned.variant, planned.run.identity] for planned in catalogue()[study].planned]
    assert found == IDENTITIES[study]
