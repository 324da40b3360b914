"""The numbers of docs/no-memory.md, computed again without the library's statistics."""

import re

import numpy as np
import pytest
from recomputed import LOWEST, NUMBERS, RANGE, ROOT, curves_of, final_of, near, number, rows_between, runs_of

PAGE = (ROOT / "docs" / "no-memory.md").read_text()
METHODS = {
    "Stream Q": "stream-q", "Stream C51": "stream-c51", "IQ": "iq", "DSOM": "dsom", "MeDQN(U)": "medqn-u",
    "MeDQN(R)": "medqn-r", "DQN": "dqn", "IQ-RE": "iq-re", "local-q": "local-q",
}  # fmt: skip
MARGIN = 2.0
"""percent of the range"""
BESIDE = {
    "results/no-memory results/no-memory-tuned, beside only": ("no-memory", "no-memory-tuned"),
    "results/no-memory, beside only": ("no-memory",),
    "results/no-memory results/no-memory-controls, beside only": ("no-memory", "no-memory-controls"),
    "results/no-memory-lunar, beside only": ("no-memory-lunar",),
}
"""tables of the page, and the studies that they show"""


def tables(marked):
    """The rows of the tables below a comment that names studies."""
    return list(rows_between(PAGE, f"<!-- {marked} -->", "<!-- end -->"))


def run_named(name, task, curves):
    """ "DQN, N=50,000, tuned, dueling" -> its returns."""
    found = re.fullmatch(r"([^,]+)(?:, N=([\d,]*\d))?(?:, (.*))?", name)
    method, size, variant = METHODS[found[1]], found[2], found[3] or ""
    (key,) = [
        key
        for key in curves
        if key[:3] == (variant, task, method) and (size is None or key[3] == int(size.replace(",", "")))
    ]
    return curves[key]


def interval_of(own, other, chance):
    """95% bootstrap interval of the difference of two means."""
    means = [scores[chance.integers(0, len(scores), (4000, len(scores)))].mean(axis=1) for scores in (own, other)]
    return np.quantile(means[0] - means[1], (0.025, 0.975))


def verdict_of(low, high, margin):
    if low > 0 or high < 0:
        return "above" if low > 0 else "below"
    return "level" if low > -margin and high < margin else "open"


def p_of(own, other, chance):
    """Two-sided permutation test of the difference of two means."""
    both, n = np.concatenate([own, other]), len(own)
    # All values less their mean: the sum of one side then says how far apart the sides are.
    both = both - both.mean()
    sums = chance.permuted(np.tile(both, (20_000, 1)), axis=1)[:, :n].sum(axis=1)
    return (np.sum(np.abs(sums) >= abs(both[:n].sum()) - 1e-9) + 1) / 20_001


def holm_of(tests):
    """Each p times the number of tests that are not below it, and never less than that of a smaller p."""
    raised, least = np.empty(len(tests)), 0.0
    for place, i in enumerate(np.argsort(tests)):
        least = raised[i] = min(1.0, max(least, tests[i] * (len(tests) - place)))
    return raised


def p_shown(text):
    return 0.0 if text.startswith("<") else float(text)


@pytest.mark.parametrize(("marked", "studies"), BESIDE.items())
def test_margins_are_what_the_curves_say(marked, studies):
    curves, chance, compared = curves_of(*studies), np.random.default_rng(7), 0
    tests = []
    for row in tables(marked):
        task = row["task"]
        own, other = (run_named(name, task, curves) for name in ("local-q", row["beside"]))
        for name in ("final", "AUC"):
            scores = [NUMBERS[name](returns) for returns in (own, other)]
            assert near(row[f"{name} local-q"], scores[0].mean()), row
            assert near(row[f"{name} other"], scores[1].mean()), row
            unit = 100 / RANGE[task] if task in RANGE else 1.0
            shown = row[f"{name} difference [95%]"]
            assert near(shown, unit * (scores[0].mean() - scores[1].mean())), row
            low, high = unit * interval_of(*scores, chance)
            ends = [number(end) for end in re.search(r"\[(.*), (.*)\]", shown).groups()]
            off = 0.06 + 0.08 * (high - low)  # two bootstraps, rounded to a tenth
            assert ends == pytest.approx([low, high], abs=off), row
            margin = MARGIN if task in RANGE else 0.0
            if min(abs(low), abs(high), abs(low + margin), abs(high - margin)) > off:
                assert row[f"{name} verdict"] == verdict_of(low, high, margin), row
            tests.append((p_of(*scores, chance), p_shown(row[f"{name} p"]), row))
            compared += 3
    for exact, (_, shown, row) in zip(holm_of([p for p, *_ in tests]), tests, strict=True):
        # Of 20,000 random splits here and 100,000 on the page, and then multiplied by the correction.
        assert shown == pytest.approx(exact, rel=0.3, abs=0.02), row
    assert compared == 6 * len(tables(marked)) > 0


@pytest.mark.parametrize("marked", [name for name in BESIDE if "lunar" not in name])
def test_sentences_count_the_verdicts(marked):
    rows, below = tables(marked), PAGE[PAGE.index(f"<!-- {marked} -->") :]
    for rival in {row["beside"] for row in rows}:
        sentence = re.search(rf"^- local-q beside {re.escape(rival)}: (.*)\.$", below, re.M)[1]
        of = [row for row in rows if row["beside"] == rival]
        for name, part in zip(("final", "AUC"), sentence.split("; "), strict=True):
            counts = {word: int(n) for word, n in re.findall(r"(above|level|below|open) on (\d)", part)}
            seen = [row[f"{name} verdict"] for row in of]
            assert counts == {word: seen.count(word) for word in set(seen)}, sentence
            ends = [
                [number(end) for end in re.search(r"\[(.*), (.*)\]", row[f"{name} difference [95%]"]).groups()]
                for row in of
            ]
            assert int(re.search(r"not below by more than 2% on (\d)", part)[1]) == sum(low > -2 for low, _ in ends)
            far = {"above": sum(low > 2 for low, _ in ends), "below": sum(high < -2 for _, high in ends)}
            for word, n in re.findall(r"(above|below) on \d \(by more than 2% on (\w+)\)", part):
                assert int(n.replace("none", "0")) == far[word], sentence


@pytest.mark.parametrize("marked", BESIDE)
def test_what_the_corrected_tests_confirm(marked):
    part = PAGE[PAGE.index(f"<!-- {marked} -->") :]
    sentence = re.search(r"^- Corrected for all (\d+) tests of the table \(Holm\): (.*)$", part, re.M)
    rows = [(row, name) for row in tables(marked) for name in ("final", "AUC")]
    apart = [(row, name) for row, name in rows if row[f"{name} verdict"] in ("above", "below")]
    unsure = [(row, name) for row, name in apart if p_shown(row[f"{name} p"]) >= 0.05]
    assert int(sentence[1]) == len(rows)
    assert sentence[2].startswith(f"{len(apart) - len(unsure)} of the {len(apart)} differences")
    for row, name in unsure:
        assert f"{row['beside']} on {row['task']} ({name})" in sentence[2]


def check_scores(row, of):
    """`of`: the returns on each task of the row."""
    shares = {"final": [], "AUC": []}
    for task, returns in of.items():
        assert near(row[f"final {task}"], final_of(returns).mean()), row
        for name, values in shares.items():
            values.append(100 * (NUMBERS[name](returns).mean() - LOWEST[task]) / RANGE[task])
    for name, values in shares.items():
        assert near(row[f"mean {name}"], np.mean(values)), row


@pytest.mark.parametrize("study", ["local-q-tuning", "local-q-features", "local-q-units"])
def test_scores_of_the_searches(study):
    runs, compared = list(runs_of(study)), 0
    for row in tables(f"results/{study}, scores only"):
        wanted = dict(part.split("=") for part in row["run"].split(" "))
        of = {
            run["config"]["task"]: returns
            for run, returns in runs
            if all(str(run["config"][name]).rstrip("0").rstrip(".") == value.rstrip("0").rstrip(".")
                   for name, value in wanted.items())
        }  # fmt: skip
        assert len(of) == 6, row
        check_scores(row, of)
        compared += 8
    assert compared >= 48


@pytest.mark.parametrize("studies", [("no-memory", "no-memory-tuned", "no-memory-controls"), ("local-q-ablations",)])
def test_scores_of_the_runs(studies):
    curves, rows = curves_of(*studies), tables(" ".join(f"results/{name}" for name in studies) + ", scores only")
    assert len(rows) > 10
    for row in rows:
        of = {task: run_named(row["run"], task, curves) for task in RANGE if f"final {task}" in row}
        check_scores(row, of)


def test_what_was_held_to_the_end():
    curves = curves_of("local-q-long")
    rows = tables("results/local-q-long, held only")
    assert rows
    for row in rows:
        returns = run_named(row["run"], row["task"], curves)
        losses = 100 * NUMBERS["deterioration"](returns) / RANGE[row["task"]]
        assert int(row["seeds"]) == len(returns)
        assert near(row["final"], final_of(returns).mean())
        assert near(row["lowest seed"], final_of(returns).min())
        assert near(row["mean loss"], losses.mean())
        assert near(row["largest loss"], losses.max())
        assert int(row["seeds that lost 10%"]) == (losses > 10).sum()
