"""Runs have the same bits as when they were recorded, and studies the same runs."""

import json
import os

import pytest
from golden import recording

from iqrl.envs.registry import TASKS
from iqrl.experiments.study.study import catalogue

CASES = recording.cases()
RECORDED = json.loads(recording.FILE.read_text()).get(recording.processor())
IDENTITIES = json.loads(recording.FILE.with_name("identities.json").read_text())
SHORT = (
    "dqn N=100", "iq N=1", "dsom N=100", "tcnn N=100", "srnn N=100", "medqn-u N=100", "rainbow-iq N=100",
    "stream-q N=1", "local-q N=1", "dqn images N=1", "iq measured", "iq hosted",
)  # fmt: skip
CHOSEN = [name for name in (CASES if "IQRL_ALL_DIGESTS" in os.environ else SHORT) if name in (RECORDED or ())]
"""IQRL_ALL_DIGESTS=1, before and after a change that should leave all bits alone: every case and every task"""
TASKS_CHOSEN = list(TASKS) if "IQRL_ALL_DIGESTS" in os.environ else [name for name in TASKS if "/" not in name]

needs_record = pytest.mark.skipif(
    RECORDED is None, reason="no digests for this kind of processor; tests/golden/recording.py records them"
)


@needs_record
@pytest.mark.parametrize("name", CHOSEN)
def test_a_run_has_the_bits_that_it_had(name):
    found = recording.digests(*CASES[name])
    assert {part: found[part] for part in RECORDED[name]} == RECORDED[name]


@needs_record
@pytest.mark.parametrize("task", TASKS_CHOSEN)
def test_a_task_has_the_states_that_it_had(task):
    assert recording.task_digest(task) == RECORDED[f"task {task}"]["states"]


def test_every_recorded_case_is_still_one():
    assert RECORDED is None or set(RECORDED) <= {*CASES, *(f"task {task}" for task in TASKS)}


@pytest.mark.parametrize("study", IDENTITIES)
def test_a_study_has_the_runs_that_it_had(study):
    """By identity: a study in results/ is found again, and a finished run is not trained anew."""
    found = [[planned.variant, planned.run.identity] for planned in catalogue()[study].planned]
    assert found == IDENTITIES[study]
