import copy
import json
import pickle
import threading
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.blocks import on_all_cores
from kdcal_core.errors import InputError, InputWarning, quiet, warn


def test_says_what_where_and_how_to_fix():
    error = InputError("Not a number.", fix="Type one.", file="a.csv", column="age", row=1234)
    assert str(error) == "Not a number (file 'a.csv', column 'age', row 1,234). Type one."


def test_is_a_value_error_so_that_library_users_catch_it():
    with pytest.raises(ValueError, match="Nothing here"):
        raise InputError("Nothing here")


@given(
    what=st.text(min_size=1),
    fix=st.text(),
    file=st.none() | st.text(),
    column=st.none() | st.text(),
    row=st.none() | st.integers(1, 10**9),
)
def test_survives_copy_and_the_way_out_of_another_process(what, fix, file, column, row):
    error = InputError(what, fix=fix, file=file, column=column, row=row)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (other.what, other.fix, other.where) == (error.what, error.fix, error.where)
        assert str(other) == str(error)
    json.dumps({"where": error.where})


def test_at_fills_only_what_is_not_known():
    error = InputError("Wrong", column="a").at(file="t.csv", column="b", row=2)
    assert error.where == "file 't.csv', column 'a', row 2"


def test_a_name_of_ten_thousand_letters_does_not_fill_the_screen():
    error = InputError("Wrong", column="q" * 10_000)
    assert len(str(error)) < 300
    assert error.column == "q" * 10_000


def test_two_threads_are_quiet_each_for_itself():
    first_is_out, second_is_in = threading.Event(), threading.Event()
    said: dict[str, list[str]] = {}

    def first():
        with quiet() as said["first"]:
            second_is_in.wait(10)
            warn("one")
        first_is_out.set()

    def second():
        with quiet() as said["second"]:
            second_is_in.set()
            first_is_out.wait(10)  # which put back the filters that both had found, where shared
            warn("two")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with quiet() as said["cores"]:
            on_all_cores(warn, ["a", "b"], note=str)
    assert sorted(said.pop("cores")) == ["a", "b"]
    assert said == {"first": ["one"], "second": ["two"]}
    assert not heard


def test_a_warning_names_the_line_of_the_caller():
    def work():
        warn("Look", stacklevel=2)

    with pytest.warns(InputWarning, match="Look") as heard:
        work()
    assert heard[0].filename == __file__
    with quiet() as outer:
        with quiet() as inner:
            warn("in")
        warn("out")
    assert (outer, inner) == (["out"], ["in"])
