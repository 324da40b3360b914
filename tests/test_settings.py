"""Settings: what a declaration makes of a value, and what decides a run's identity."""

import dataclasses
import typing
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iqrl.errors import BadInput
from iqrl.make_run import groups_for, resolve
from iqrl.settings import Run, Settings, fields_of, merge_groups, run_class, setting, settings_of


def test_every_setting_of_the_library_belongs_to_one_group_and_has_help():
    names = [field.name for group in groups_for() for field in fields_of(group)]
    assert len(names) == len(set(names))
    assert all(group.__doc__ for group in groups_for())
    assert all(field.metadata["help"] for field in settings_of(groups_for()).values())


class Example(Settings):
    """an example"""

    share: float = setting(0.5, "at least 0, below 1", minimum=0, below=1)
    size: int = setting(3, "above 0, at most 9", above=0, maximum=9)
    kind: Literal["one", "two"] = setting("one", "a choice")
    layers: tuple[int, ...] = setting((8,), "at least one")
    limit: int | None = setting(None, "may be missing", minimum=1)
    note: str = setting("", "text")

    def check(self):
        if self.kind == "two" and self.size < 2:
            raise BadInput(f"size is {self.size}; two of a kind need 2.")


def test_values_are_brought_to_their_declared_types():
    made = Example(share=0, size=4.0, layers=[7, 5], limit=2)
    assert made == Example(share=0.0, size=4, layers=(7, 5), limit=2)
    assert [type(value) for value in (made.share, made.size, made.layers)] == [float, int, tuple]
    assert Example(layers=6).layers == (6,)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.size = 5


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"share": -0.1}, "share must be at least 0, got -0.1"),
        ({"share": 1.0}, "share must be below 1, got 1.0"),
        ({"size": 0}, "size must be above 0, got 0"),
        ({"size": 10}, "size must be at most 9, got 10"),
        ({"size": 2.5}, "size must be a whole number, got 2.5"),
        ({"size": True}, "size must be a finite number, got True"),
        ({"kind": "tow"}, "unknown kind 'tow'; did you mean two"),
        ({"layers": []}, "layers must have at least one value"),
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"note": 3}, "note must be text, got 3"),
        ({"kind": "two", "size": 1}, "size is 1; two of a kind need 2"),
    ],
)
def test_what_is_out_of_range_gets_a_sentence(values, words):
    with pytest.raises(BadInput, match=words):
        Example(**values)


def test_groups_become_a_class_of_runs():
    cls = run_class((Example,))
    run = cls(task="a", method="b", steps=100, period=10, epsilon_decay=10, learning_starts=10, size=4)
    assert (run.size, run.gamma) == (4, 0.99)
    assert run_class((Example,)) is cls
    assert run_class(()) is Run
    with pytest.raises(BadInput, match="two of a kind need 2"):
        dataclasses.replace(run, kind="two", size=1)


def test_a_setting_that_two_groups_have_is_refused():
    class Other(Settings):
        """another"""

        size: int = setting(1, "the same name")

    with pytest.raises(BadInput, match="two groups of settings both have size: Example, Other"):
        merge_groups("Both", (Example, Other))
    with pytest.raises(BadInput, match="both have gamma"):
        run_class((type("Own", (Settings,), {"__annotations__": {"gamma": float}, "gamma": setting(0.5, "γ")}),))


VALUES = {int: st.integers(1, 10**6), float: st.floats(0, 1), bool: st.booleans()}
OF_IQ = typing.get_type_hints(type(resolve("CartPole-v0", "iq")))


@given(data=st.data(), name=st.sampled_from(sorted(OF_IQ)))
def test_identity_follows_the_content(data, name):
    kind = next((kind for kind in (bool, int, float) if OF_IQ[name] in (kind, kind | None)), None)
    if kind is None:
        return
    value = data.draw(VALUES[kind])
    base = resolve("CartPole-v0", "iq", steps=10**6, period=1)
    try:
        other = dataclasses.replace(base, **{name: value})
    except BadInput:
        return
    same = name == "steps" or getattr(other, name) == getattr(base, name)
    assert (other.identity == base.identity) == same
