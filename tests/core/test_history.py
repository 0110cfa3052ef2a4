"""What is kept of starts that are over: merged, bounded, and what is usual by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.history import ENOUGH, KEPT_STARTS, MAX_STARTS, History, Start, Usual, merged, read, written

H100 = "ci-training-h100"


def start(number: int = 1, pool: str = H100, *, cold: bool = True, seconds: int = 420, **steps: int) -> Start:
    """A start; later ones have higher numbers."""
    return Start(f"uid-{number}", "2026-03-02T10:00:00Z", pool, cold, 1_772_445_960 + number, seconds, steps)


def history(*starts: Start) -> History:
    """A history of these."""
    return History({each.key: each for each in starts})


STARTS = st.lists(
    st.builds(
        lambda number, pool, cold: start(number, pool, cold=cold),
        st.integers(0, 60),
        st.sampled_from(["a", "b"]),
        st.booleans(),
    ),
    max_size=80,
)


@given(STARTS, STARTS)
def test_two_histories_are_merged_in_any_order(one: list[Start], other: list[Start]) -> None:
    """Whoever writes first: the same starts are left, each once, and merging again changes nothing."""
    every = {each.key: each for each in [*one, *other]}
    one, other = [every[each.key] for each in one], [every[each.key] for each in other]
    both = merged(one, other)

    assert both == merged(other, one) == merged(both) == merged(both, one)
    assert len({each.key for each in both}) == len(both)
    for pool, cold in {(each.pool, each.cold) for each in both}:
        kind = [each for each in both if (each.pool, each.cold) == (pool, cold)]
        wanted = sorted(each.at for each in every.values() if (each.pool, each.cold) == (pool, cold))
        assert [each.at for each in kind] == wanted[-KEPT_STARTS:]


def test_what_is_kept_is_bounded_and_stays_below_the_limit_of_a_config_map() -> None:
    """Whoever submits runs with pools of their own naming; an object may have 1 MiB."""
    steps = {"queue": 99_999, "scale_up": 99_999, "node": 99_999, "ready": 99_999, "gpu": 99_999}
    steps |= {"place": 99_999, "image": 99_999, "start": 99_999}
    uid, pool = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", "p" * 63
    many = [
        Start(f"{uid}{n:05}", "2026-03-02T10:00:00Z", f"{pool}{n // 30}", n % 2 == 0, n, n, steps) for n in range(9999)
    ]

    kept = merged(many)

    assert len(kept) == MAX_STARTS
    assert kept[-1].at == 9998
    assert len(written(kept)) < 160 * 1024


def test_what_is_written_is_read() -> None:
    """The text goes through a ConfigMap and comes back."""
    starts = (start(1, node=150), start(2, cold=False, seconds=20))

    assert starts == read(written(starts))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 2, "starts": []}', '{"v": 1, "starts": [{"run": 7}]}', "null"])
def test_a_text_that_is_none_of_ours_holds_nothing(text: str) -> None:
    """A person may have edited it, or a later version may have written it."""
    assert () == read(text)


def test_usual_is_the_median_of_its_kind() -> None:
    """One start in ten that took an hour moves nothing; cold and warm ones, and pools, are apart."""
    cold = [start(n, seconds=400 + n, node=150, gpu=60 + n) for n in range(5)]
    known = history(*cold, start(7, seconds=3600, node=3000), start(8, cold=False, seconds=20), start(9, "ci-compile"))

    usual = known.usual(H100, cold=True)

    assert (6, 402.5, {"node": 150, "gpu": 62}) == (usual.count, usual.seconds, usual.steps)
    assert Usual(1) == known.usual(H100, cold=False)
    assert Usual() == known.usual("ci-training", cold=True)


def test_a_step_that_was_seldom_seen_has_no_usual_length() -> None:
    """A step that only one start went through says nothing about the next."""
    known = history(start(1, node=100), *(start(n) for n in range(2, 2 + ENOUGH)))

    assert {} == known.usual(H100, cold=True).steps


def test_a_start_is_found_by_run_and_attempt() -> None:
    """A retry of the same run is another start."""
    known = history(start(1))

    assert start(1) == known.start("uid-1", "2026-03-02T10:00:00Z")
    assert known.start("uid-1", "2026-03-02T11:00:00Z") is None
