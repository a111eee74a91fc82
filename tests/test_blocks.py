"""Blocks give the same bytes however they are spread, report how far they are, and stop on
request."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kdcal_core.blocks import Blocks, cores, on_all_cores, run_blocks
from kdcal_core.partition import (
    LeafCodes,
    class_masses,
    find_polytopes,
    kernel,
    nearest_centres,
    nearest_polytopes,
    pack_bits,
)

EXPONENTS = np.array([0.5, 1.0, 3.3])


def forest():
    rng = np.random.default_rng(0)
    near = np.repeat(rng.integers(0, 40, (60, 30)), 8, axis=0)
    changed = rng.random(near.shape) < 0.2
    leaves = np.where(changed, rng.integers(0, 40, near.shape), near)
    leaves[:, :6] = rng.integers(0, 2, (len(leaves), 6))
    return LeafCodes(leaves.astype(np.int32))


def network():
    rng = np.random.default_rng(0)
    return pack_bits([rng.random((480, 70)) < 0.5, rng.random((480, 9)) < 0.5])


@pytest.fixture(params=[forest, network], scope="module")
def problem(request):
    codes = find_polytopes(request.param()).codes
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 3, (len(codes), 3))
    places = rng.integers(0, 5, (2, len(codes), 2)).astype(float)
    return codes, counts, places


def bytes_of(problem, **how):
    codes, counts, (x, centres) = problem
    masses = class_masses(codes, counts, EXPONENTS, **how)
    nearest = nearest_polytopes(codes, codes, x, centres, **how)
    arrays = (masses, nearest.index, nearest.kernel, nearest.tied)
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


@pytest.fixture(scope="module")
def expected(problem):
    return bytes_of(problem, threads=1)


@pytest.mark.parametrize("threads", [None, 2, 3, 50])
def test_any_number_of_threads_gives_the_same_bytes(problem, expected, threads):
    assert bytes_of(problem, threads=threads) == expected


@pytest.mark.parametrize("rows", [1, 7, 64, 10_000])
def test_any_size_of_blocks_gives_the_same_bytes(problem, expected, rows, monkeypatch):
    monkeypatch.setattr(kernel, "BLOCK_ROWS", rows)
    assert bytes_of(problem, threads=2) == expected


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def test_processes_give_the_same_bytes(problem, expected, processes):
    assert bytes_of(problem, executor=processes) == expected


def test_an_executor_of_threads_gives_the_same_bytes(problem, expected):
    with ThreadPoolExecutor(2) as pool:
        assert bytes_of(problem, executor=pool) == expected


def test_several_callers_at_once_get_the_same_bytes(problem, expected):
    with ThreadPoolExecutor(3) as callers:
        answers = list(callers.map(lambda _: bytes_of(problem, threads=2), range(3)))
    assert answers == [expected] * 3


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_rises_from_nothing_to_all(problem, threads):
    codes, counts, (x, centres) = problem
    for call in (
        lambda tell: class_masses(codes, counts, EXPONENTS, progress=tell, threads=threads),
        lambda tell: nearest_polytopes(codes, codes, x, centres, progress=tell, threads=threads),
        lambda tell: nearest_centres(x, centres, progress=tell, threads=threads),
    ):
        text = []
        call(lambda share, note, text=text: text.append((share, note)))
        shares = [share for share, _ in text]
        assert len(shares) > 2
        assert shares == sorted(set(shares))
        assert (shares[0], shares[-1]) == (0.0, 1.0)
        assert all(f"{len(codes):,}" in note for _, note in text)


class Stopped(Exception):  # noqa: N818
    pass


def stop_at(share):
    def tell(now, note):
        if now >= share:
            raise Stopped

    return tell


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_progress_raises_reaches_the_caller(problem, share, threads):
    codes, counts, _ = problem
    with pytest.raises(Stopped):
        class_masses(codes, counts, EXPONENTS, progress=stop_at(share), threads=threads)


BEGUN = []


def slow(prepared, start, stop):
    BEGUN.append(start)
    time.sleep(0.01)
    return stop - start


@pytest.mark.parametrize("own_executor", [False, True])
def test_after_a_stop_no_block_begins_and_none_runs_on(own_executor):
    BEGUN.clear()
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(Stopped):
            run_blocks(
                Blocks(slow, 1),
                int,
                1000,
                lambda start, stop, result: None,
                note="",
                progress=stop_at(0.01),
                executor=pool if own_executor else None,
                threads=2,
            )
        begun = len(BEGUN)
        assert 10 <= begun < 100
        time.sleep(0.05)
        assert len(BEGUN) == begun
    assert not [t for t in threading.enumerate() if t.name.startswith("kdcal-blocks")]


def broken(prepared, start, stop):
    if start == 5:
        raise MemoryError("no room")
    return stop - start


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_block_raises_reaches_the_caller(threads):
    with pytest.raises(MemoryError, match="no room"):
        run_blocks(Blocks(broken, 1), int, 9, lambda *_: None, note="", threads=threads)


def test_items_on_all_cores_come_back_in_order_and_stop_on_request():
    begun = []

    def work(item):
        begun.append(item)
        time.sleep(0.01)
        return item * item

    said = []
    found = on_all_cores(work, range(9), note=str, progress=lambda *one: said.append(one))
    assert found == [item * item for item in range(9)]
    assert said == [(at / 9, str(at)) for at in range(9)]

    def stop(share, note):
        if share > 0.2:
            raise KeyboardInterrupt

    begun.clear()
    with pytest.raises(KeyboardInterrupt):
        on_all_cores(work, range(100), note=str, progress=stop)
    assert len(begun) < 60
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda item: 1 / item, [1, 0, 2], note=str)


def test_work_on_all_cores_shares_them_and_leaves_blas_as_it_was():
    def threads(_):
        with threadpool_limits(1, user_api="blas"):
            time.sleep(0.01)
        return cores()

    with threadpool_limits(2, user_api="blas"):
        assert on_all_cores(threads, range(8), note=str) == [1] * 8
        inside = on_all_cores(
            lambda _: on_all_cores(lambda _: cores(), range(2), note=str), range(2), note=str
        )
        assert inside == [[1, 1], [1, 1]]
        blas = [one for one in threadpool_info() if one["user_api"] == "blas"]
        assert blas
        assert all(one["num_threads"] == 2 for one in blas)
    assert cores() == len(os.sched_getaffinity(0))
