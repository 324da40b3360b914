"""Exports: tidy tables, manifests, results of several machines as one. Nothing is trained here."""

import json

import numpy as np
import polars as pl
import pytest

from iqrl.errors import BadInput
from iqrl.experiments.study.choose import choose, make_study_file
from iqrl.experiments.study.directory import StudyDirectory
from iqrl.experiments.study.results import (
    RunRecord,
    StudyResults,
    left_out,
    load_results,
    merge_results,
    tidy_curves,
    write_export,
)
from iqrl.experiments.study.study import Study, find_study

CONTENT = {
    "title": "two methods",
    "settings": {"seeds": 2, "steps": 3000, "period": 1000},
    "runs": [
        {"task": "CartPole-v0", "method": ["dqn", "iq"], "learning_rate": [0.1, 0.2]},
        {"variant": "again", "task": "CartPole-v0", "method": "dqn", "learning_rate": 0.1},
    ],
}
RETURNS = {("dqn", 0.1): 10.0, ("dqn", 0.2): 30.0, ("iq", 0.1): 50.0, ("iq", 0.2): 20.0}


def results(content=CONTENT, keep=lambda planned: True):
    """Results of a study that was never run: the return is what the table above says, plus seed and period."""
    study = Study("mine", content)
    planned = [one for one in study.planned if keep(one)]
    records = [
        RunRecord(one.run.identity, "mine", one.variant, one.run.to_dict(), one.varied, {"commit": "c"}, {}, one.given)
        for one in planned
    ]
    tables = [curves(run) for run in {one.run.identity: one.run for one in planned}.values()]
    table = pl.concat(tables) if tables else pl.DataFrame({"run": [], "seed": [], "step": [], "return": []})
    plan = tuple((one.variant, one.run.identity) for one in study.planned)
    missing = len(study.runs) - len(tables)
    return StudyResults("mine", study.title, "", ("return",), table, records, missing, content, study.digest, plan)


def curves(run):
    seeds, steps = run.seed + np.repeat([0, 1], 3), np.tile([1000, 2000, 3000], 2)
    values = RETURNS[run.method, run.learning_rate] + seeds + steps / 1000
    lists = [[0.5, 0.5]] * 6
    columns = {"run": [run.identity] * 6, "seed": seeds, "step": steps, "return": values, "occupancy": lists}
    return pl.DataFrame(columns)


def test_every_row_says_what_its_run_is():
    table = tidy_curves(results())
    assert table.columns[:8] == ["study", "variant", "task", "method", "buffer_size", "learning_rate", "run", "seed"]
    assert table.height == 5 * 6, "the run that two variants share is in both"
    row = table.row(0, named=True)
    assert (row["study"], row["variant"], row["task"], row["method"]) == ("mine", "", "CartPole-v0", "dqn")
    assert (row["learning_rate"], row["seed"], row["step"], row["return"]) == (0.1, 0, 1000, 11.0)


def test_an_export_is_read_as_the_study_it_came_from(tmp_path):
    files = write_export([results()], tmp_path / "out", csv=True)
    assert [file.name for file in files] == ["curves.parquet", "manifest.json", "curves.csv"]
    read = load_results(tmp_path / "out")
    assert read.runs == results().runs
    assert read.unfinished == 0
    assert tidy_curves(read).equals(tidy_curves(results()))
    again = write_export([read], tmp_path / "again")
    assert again[0].read_bytes() == files[0].read_bytes(), "the same table, byte for byte"
    assert pl.read_csv(files[2])["occupancy"][0] == "[0.5, 0.5]"


def test_where_runs_vary_the_first_seed_each_row_keeps_its_own(tmp_path):
    block = CONTENT["runs"][0] | {"method": "dqn", "learning_rate": 0.1, "seed": [0, 2]}
    made = results(CONTENT | {"runs": [block]})
    write_export([made], tmp_path / "out")
    read = load_results(tmp_path / "out")
    assert read.curves.columns[:4] == ["run", "seed", "step", "return"]
    assert read.curves.equals(made.curves.sort("run", "seed", "step"))


def test_a_setting_that_a_method_lacks_is_empty_in_its_rows(tmp_path):
    blocks = [CONTENT["runs"][0] | {"learning_rate": 0.1, "method": "dqn"}]
    blocks += [blocks[0] | {"method": "iq", "contexts": [2, 3]}]
    made = results(CONTENT | {"runs": blocks})
    write_export([made], tmp_path / "out")
    found = pl.read_parquet(tmp_path / "out" / "curves.parquet").group_by("method").agg(pl.col("contexts").unique())
    assert {method: sorted(ks, key=str) for method, ks in found.iter_rows()} == {"dqn": [None], "iq": [2, 3]}
    assert load_results(tmp_path / "out").runs == made.runs


def test_the_manifest_says_what_made_each_run(tmp_path):
    write_export([results()], tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["content"] == CONTENT
    assert manifest["runs"][0]["info"] == {"commit": "c"}
    assert manifest["runs"][0]["config"]["learning_rate"] == 0.1
    assert len(manifest["curves_sha256"]) == 64


def test_parts_of_several_machines_merge():
    one, other = results(keep=lambda run: run.run.method == "dqn"), results(keep=lambda run: run.run.method == "iq")
    assert (one.unfinished, other.unfinished) == (2, 2)
    merged = merge_results([one, other])
    assert merged.unfinished == 0
    assert merged.runs == results().runs
    assert tidy_curves(merged).equals(tidy_curves(results()))
    assert tidy_curves(merge_results([other, one, results()])).equals(tidy_curves(results())), (
        "in any order, and with repetitions"
    )


def test_of_an_earlier_form_of_a_study_the_runs_that_it_still_has_are_taken():
    fewer = CONTENT | {"runs": [block | {"method": "dqn"} for block in CONTENT["runs"]]}
    now, earlier = results(fewer, keep=lambda run: False), results()
    merged = merge_results([now, earlier])
    assert {record.config["method"] for record in merged.runs} == {"dqn"}
    assert set(merged.curves["run"]) == {record.id for record in merged.runs} == {id for _, id in now.plan}
    assert (merged.unfinished, left_out([now, earlier])) == (0, len(earlier.runs) - len(merged.runs))
    assert left_out([earlier, earlier]) == 0
    with pytest.raises(BadInput, match="different studies"):
        merge_results([now, earlier._replace(name="another")])


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(BadInput, match="different studies"):
        merge_results(
            [results(), results(CONTENT | {"runs": CONTENT["runs"][:1], "settings": {"seeds": 3}}, lambda run: False)]
        )
    changed = results()
    changed = changed._replace(curves=changed.curves.with_columns(pl.col("return") + 1))
    with pytest.raises(BadInput, match="different curves"):
        merge_results([results(), changed])


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BadInput, match="not an export"):
        write_export([results()], tmp_path)
    with pytest.raises(BadInput, match="neither a study"):
        load_results(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match="cannot be read as an export"):
        load_results(tmp_path)


def test_an_export_is_replaced_by_one_of_the_same_study_only(tmp_path):
    write_export([results()], tmp_path / "out", csv=True)
    write_export([results(keep=lambda planned: planned.run.method == "dqn")], tmp_path / "out")
    assert load_results(tmp_path / "out").unfinished == 2
    assert not (tmp_path / "out" / "curves.csv").exists(), "it was of the export before"
    with pytest.raises(BadInput, match="holds an export of the study 'mine'; choose another directory"):
        write_export([results()._replace(name="yours")], tmp_path / "out")


def test_a_study_without_results_is_not_exported(tmp_path):
    with pytest.raises(BadInput, match="study mine has no finished run to export"):
        write_export([results(keep=lambda run: False)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_study_is_read_where_the_packages_of_its_task_are_missing(tmp_path, monkeypatch):
    settings = {"task": "FrozenLake-v1", "method": "dqn", "steps": 2000, "learning_rate": [0.1, 0.2]}
    study = Study("mine", {"runs": [settings]})
    directory = StudyDirectory.create(tmp_path / "mine", study)
    with directory.locked():
        pass

    def missing(*given, **more):
        raise ModuleNotFoundError("No module named 'Box2D'", name="Box2D")

    monkeypatch.setattr("gymnasium.make", missing)
    found = load_results(tmp_path / "mine")
    assert (found.unfinished, found.digest) == (2, study.digest)
    assert not Study("mine", CONTENT).needs_packages


def test_the_best_of_each_method_is_chosen():
    chosen = choose(results(), ["learning_rate"])
    named = {(run.variant, run.config["method"]): (run.config["learning_rate"], value) for run, value in chosen}
    assert named == {("", "dqn"): (0.2, 32.5), ("", "iq"): (0.1, 52.5), ("again", "dqn"): (0.1, 12.5)}
    assert [value for _, value in choose(results(), ["learning_rate"], "final")] == [33.5, 53.5, 13.5]


def test_what_was_chosen_is_a_study_on_other_seeds(tmp_path):
    found = results(keep=lambda planned: not planned.variant)
    text = make_study_file(found, choose(found, ["learning_rate"]), ["learning_rate"], "auc", "tuned", 5)
    (tmp_path / "tuned.toml").write_text(text)
    tuned = find_study(str(tmp_path / "tuned.toml"))
    assert {(run.method, run.learning_rate) for run in tuned.runs.values()} == {("dqn", 0.2), ("iq", 0.1)}
    assert {planned.variant for planned in tuned.planned} == {"tuned"}
    assert {run.seeds for run in tuned.runs.values()} == {5}
    assert "on seeds 0 to 1" in text
    assert {run.seed for run in tuned.runs.values()} == {2}, "they were chosen on 0 and 1"


def test_what_was_chosen_of_a_variant_keeps_its_name():
    found = results()
    text = make_study_file(found, choose(found, ["learning_rate"]), ["learning_rate"], "auc", "tuned", 5)
    assert [line for line in text.splitlines() if line.startswith("variant")] == [
        'variant = "tuned"',
        'variant = "tuned"',
        'variant = "tuned, again"',
    ]


def test_seeds_far_from_the_usual_leave_those_free():
    far = CONTENT | {"settings": CONTENT.get("settings", {}) | {"seed": 1000}}
    found = results(far, keep=lambda planned: not planned.variant)
    text = make_study_file(found, choose(found, ["learning_rate"]), ["learning_rate"], "auc", "tuned", 5)
    assert "seed = " not in text


def test_of_a_search_the_best_draw_of_each_method_is_chosen(tmp_path):
    """Each in a block of its own, with a setting of its own, beside the preset."""
    block = {"task": "CartPole-v0", "buffer_size": 1}
    draws = {"draws": 2, "learning_rate": [0.1, 0.2]}
    content = CONTENT | {"runs": [
        block | {"method": ["dqn", "iq"], "learning_rate": 0.1},
        block | {"method": "dqn", "search": draws | {"dueling": [True]}},
        block | {"method": "iq", "search": draws | {"contexts": [2]}},
    ]}  # fmt: skip
    over = ["learning_rate", "dueling", "contexts"]
    chosen = choose(results(content), over, "final")
    named = {run.config["method"]: (run.config["learning_rate"], run.config.get("contexts")) for run, _ in chosen}
    assert named == {"dqn": (0.2, None), "iq": (0.1, 3)}, "of equal values the first, which is the preset's"
    (tmp_path / "best.toml").write_text(make_study_file(results(content), chosen, over, "final", "tuned", 10))
    best = {run.method: run for run in find_study(str(tmp_path / "best.toml")).runs.values()}
    assert (best["dqn"].dueling, best["dqn"].learning_rate, best["dqn"].seeds) == (True, 0.2, 10)
    assert best["iq"].contexts == 3


def test_only_what_varies_can_be_chosen():
    with pytest.raises(BadInput, match="did you mean learning_rate"):
        choose(results(), ["learningrate"])
    with pytest.raises(BadInput, match="unknown measure"):
        choose(results(), ["learning_rate"], "max")
    with pytest.raises(BadInput, match="no finished run"):
        choose(results(keep=lambda run: False), [])
