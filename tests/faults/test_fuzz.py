"""A thousand inputs that nobody would give on purpose: each ends in a sentence, none in a traceback."""

import pytest
from fuzzing import KINDS, Case, build_parser_once, fuzz, nothing_compiled, run_case

CASES, SEED = 1000, 0


def test_no_input_ends_in_a_traceback(originals, tmp_path, monkeypatch):
    monkeypatch.setattr("iqrl.plugins._trusted", set())
    outcomes, failures = fuzz(originals, tmp_path, CASES, SEED)
    assert not failures
    assert sum(outcomes.values()) == CASES
    assert len({kind for kind, _ in outcomes}) == len({"command line", "flag", "config", "run.json", "study.json",
        "manifest.json", "study file", "plug-in"})  # fmt: skip
    assert len(KINDS) > 5
    refused = sum(count for (_, outcome), count in outcomes.items() if outcome == "refused")
    assert refused > CASES / 2


def test_the_oracle_sees_what_it_is_for(originals, tmp_path, monkeypatch):
    """A mistake, a long answer, a file left behind and nonsense that is accepted."""

    def command(options):
        (tmp_path / "left").write_text("")
        raise BAD[0]

    from iqrl.errors import BadInput

    BAD = [None]
    build_parser_once.cache_clear()
    monkeypatch.setattr("iqrl.cli.listing.list_all", command)
    with nothing_compiled(tmp_path):
        BAD[0] = TypeError("oh")
        with pytest.raises(AssertionError, match="a mistake in iqrl"):
            run_case(Case("x", ["list"]), originals, tmp_path)
        (tmp_path / "left").unlink()
        BAD[0] = BadInput("no.")
        with pytest.raises(AssertionError, match="left behind"):
            run_case(Case("x", ["list"]), originals, tmp_path)
        with pytest.raises(AssertionError, match="nonsense is accepted"):
            run_case(Case("x", ["--version"], nonsense=True), originals, tmp_path)
    build_parser_once.cache_clear()
