"""`/gpu warm` and `/gpu cool`: who may, what is made of it, and when it gives way."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bot.core.alerting import WAKE_ALERTS
from bot.core.commands.gpu import CoolPool, WarmPool, parse
from bot.core.effects import Answer, Effect, MakePlaceholder, RemovePlaceholders, WakeAt
from bot.core.errors import UserError
from bot.core.events import CommandTyped, EffectDone, EffectFailed, LeaseLost, LeaseWon, PoolsSeen, Trouble, Woke
from bot.core.render.money import hours, money, span
from bot.core.settings import Pool, Right, Role, Settings, Warm
from bot.core.sightings import PodSeen, PodsListed, Source, SourceHidden
from bot.core.warming import WAKE_WARM, pod_name
from tests.core.playbook import Playbook
from tests.core.pool_phrases import H100, L4, L40S, POOLS, placeholder, pod
from tests.phrases import NOW, SETTINGS

NO_GPU = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
KNOWN = "No pool `h1000`. I know H100 (ci-training-h100), L40S (ci-training), L4 (ci-compile)."
UNTIL = float(int(NOW) + 1800)
ADMINS = replace(
    SETTINGS,
    pools=(replace(POOLS[0], price_per_hour=2.73), *POOLS[1:]),
    roles=(
        Role("admins", users=("anna",), user_ids=("anna",), may=(Right.LOOK, Right.WARM)),
        Role("l4", users=("ben",), user_ids=("ben",), may=(Right.LOOK, Right.WARM), pools=(L4,)),
        Role("everybody"),
    ),
)


def book_of(*pods: object, settings: Settings = ADMINS, leader: bool = True) -> Playbook:
    """A bot that sees these pods, and nothing is under way."""
    book = Playbook(settings=settings, leader=leader)
    effects = book.tell(PoolsSeen(PodsListed(tuple(pods), everywhere=True)))  # type: ignore[arg-type]
    for effect in effects:
        if isinstance(effect, RemovePlaceholders):
            book.tell(EffectDone(effect.id, ()))
    book.tell(Woke(WAKE_WARM))
    return book


def typed(book: Playbook, text: str, who: str = "anna", request: str = "r1") -> Effect:
    """The one effect of a command."""
    (effect,) = book.tell(CommandTyped(request, "gpu", text, who, who, "CHANNEL"))
    return effect


def refused(book: Playbook, text: str, who: str = "anna") -> str:
    """The refusal, without its mark."""
    effect = typed(book, text, who, f"{who} {text}")
    assert isinstance(effect, Answer)
    return effect.text.removeprefix("🤔 ")


def seen(book: Playbook, *sights: PodSeen) -> list[Effect]:
    """What comes of it that these pods are seen."""
    return [effect for sight in sights for effect in book.tell(PoolsSeen(sight))]


# what is typed


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("warm h100", WarmPool("h100", None)),
        ("WARM H100 for=30m", WarmPool("H100", 30)),
        ("warm h100 for=1h30m", WarmPool("h100", 90)),
        ("warm h100 for=2h", WarmPool("h100", 120)),
        ("warm h100 for=45", WarmPool("h100", 45)),
        ("warm h100 for 45 min", WarmPool("h100", 45)),
        ("warm h100 --for 1h", WarmPool("h100", 60)),
        ("warm h100 1 hour 30 minutes", WarmPool("h100", 90)),
        ('warm ci-training for="20 m"', WarmPool("ci-training", 20)),
        ("cool ci-training", CoolPool("ci-training")),
    ],
)
def test_words(text: str, asked: object) -> None:
    """A pool, and how long; as people write times."""
    assert asked == parse(text)


@pytest.mark.parametrize(
    ("text", "says", "copy"),
    [
        ("warm", "Which pool shall I keep warm?", "/gpu pools"),
        ("cool", "Which pool shall I let cool?", "/gpu pools"),
        ("warm h100 for=soon", "for=`soon`: I take a time such as 30m or 1h30m.", "/gpu warm h100 for=30m"),
        ("warm h100 for=30m 1h", "Behind warm I take a pool and, with for=, how long.", "/gpu warm h100"),
        ("warm h100 pool=l4", "Behind warm I take a pool and, with for=, how long.", "/gpu warm h100"),
        ("cool h100 for=30m", "Behind cool I take a pool.", "/gpu cool h100"),
        ("cool h100 now", "Behind cool I take a pool.", "/gpu cool h100"),
    ],
)
def test_what_is_not_understood(text: str, says: str, copy: str) -> None:
    """It says what it takes, with a line to copy."""
    with pytest.raises(UserError) as error:
        parse(text)
    assert (says, copy) == (error.value.text, error.value.suggestion)


def test_a_line_to_copy_names_a_pool() -> None:
    """The first that is configured, if the asker may have it; the help where not."""
    warm, cool = "Which pool shall I keep warm?", "Which pool shall I let cool?"
    near = "No word `wram`. Did you mean warm? I take status, pools, queue, warmup, cost or help; with a pool, warm or cool."

    assert f"{warm}\n`/gpu warm ci-training-h100`" == refused(book_of(), "warm")
    assert f"{cool}\n`/gpu cool ci-training-h100`" == refused(book_of(), "cool")
    assert f"{near}\n`/gpu warm ci-training-h100`" == refused(book_of(), "wram")
    assert f"{warm}\n`/gpu help`" == refused(book_of(), "warm", "cleo")
    assert f"{warm}\n`/gpu pools`" == refused(book_of(settings=replace(ADMINS, pools=())), "warm")


# what is made of it


def test_a_pool_is_kept_warm_and_it_says_what_that_costs() -> None:
    """The pod's name is the request's; the answer comes when the pod is there."""
    book = book_of()

    effect = typed(book, "warm h100 for=30m")

    assert isinstance(effect, MakePlaceholder)
    assert (pod_name("r1"), H100, NOW + 1800, 1800, "anna", "foxhunt") == (
        *(effect.name, effect.pool, effect.until, effect.seconds, effect.user, effect.namespace),
    )
    (answer,) = book.tell(EffectDone(effect.id, effect.name))
    assert isinstance(answer, Answer)
    assert answer.text == (
        "🔥 **H100** is kept warm until 10:36 UTC (30 min), or until somebody needs the GPU: then it gives way at once."
        " `/gpu cool ci-training-h100` ends it sooner.\n"
        "That costs up to €1.37 (30 min at €2.73 a node and hour), and after it what the node stays up until the"
        " autoscaler takes it away. Nothing more where a node is up and used anyway."
    )


def test_the_same_command_delivered_twice_makes_one() -> None:
    """In one process it waits for the same answer; in another the pod has the same name, though it is seen by now."""
    book = book_of()
    first = typed(book, "warm h100")
    assert book.tell(CommandTyped("r1", "gpu", "warm h100", "anna", "anna", "CHANNEL")) == []

    other = book_of(placeholder(pod_name("r1")), leader=False)
    second = typed(other, "warm h100")

    assert isinstance(first, MakePlaceholder)
    assert isinstance(second, MakePlaceholder)
    assert first.name == second.name
    assert 1800 == second.seconds


def test_without_a_price_it_says_so_and_tomorrow_is_told_with_its_day() -> None:
    """Nothing is made up."""
    book = book_of(settings=replace(ADMINS, timezone="Asia/Tokyo"))
    book.now = NOW + 4.5 * 3600  # 23:36 there
    effect = typed(book, f"warm {L40S} for=1h5m")
    assert isinstance(effect, MakePlaceholder)

    (answer,) = book.tell(EffectDone(effect.id, effect.name))

    assert isinstance(answer, Answer)
    assert "until Tue 3 Mar 00:41 JST (1 h 5 min)" in answer.text
    assert answer.text.endswith("What it costs I can't say: config.yaml has no price for this pool.")


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (
            Trouble.REFUSED,
            "⚠️ I could not keep it warm: pods is forbidden. An administrator has to apply `deploy/bot/rbac-warm.yaml` once.",
        ),
        (Trouble.GONE, "⚠️ I could not keep it warm: pods is forbidden. See how it is with `/gpu pools`."),
    ],
)
def test_the_cluster_says_no(trouble: Trouble, says: str) -> None:
    """The reason, and what to do."""
    book = book_of()
    effect = typed(book, "warm h100")
    assert isinstance(effect, MakePlaceholder)

    (answer,) = book.tell(EffectFailed(effect.id, trouble, "pods is forbidden"))

    assert isinstance(answer, Answer)
    assert says == answer.text


def test_a_busy_cluster_is_asked_again() -> None:
    """Under the same name, so that it can't become two."""
    book = book_of()
    effect = typed(book, "warm h100")
    assert isinstance(effect, MakePlaceholder)

    (wake,) = book.tell(EffectFailed(effect.id, Trouble.UNCERTAIN, "no answer"))

    assert isinstance(wake, WakeAt)
    (again,) = book.tell(Woke(wake.key))
    assert isinstance(again, MakePlaceholder)
    assert effect.name == again.name


@pytest.mark.parametrize(("count", "says"), [(1, "❄️ **H100** is not kept warm any more."), (0, "nothing to end")])
def test_cool(count: int, says: str) -> None:
    """What stands in the cluster is what is removed."""
    book = book_of()

    effect = typed(book, "cool h100")

    assert isinstance(effect, RemovePlaceholders)
    assert (H100, NOW) == (effect.pool, effect.before)
    (answer,) = book.tell(EffectDone(effect.id, ("gpu-warm-1",) * count))
    assert isinstance(answer, Answer)
    assert says in answer.text


@pytest.mark.parametrize(
    ("pool", "says"),
    [
        ("h100", "❄️ **H100** is not kept warm any more after 16 min, which cost up to €0.73. Its node costs until"),
        ("l4", "❄️ **L4** is not kept warm any more after 16 min. Its node costs until"),
    ],
)
def test_cool_says_what_it_cost(pool: str, says: str) -> None:
    """From when the placeholder was made; without a price the time alone."""
    book = book_of(placeholder(), placeholder("gpu-warm-2", pool=L4))
    effect = typed(book, f"cool {pool}")
    assert isinstance(effect, RemovePlaceholders)
    (answer,) = book.tell(EffectDone(effect.id, ("gpu-warm-1",)))
    assert isinstance(answer, Answer)
    assert answer.text.startswith(says)


def test_cool_that_fails() -> None:
    """It says so."""
    book = book_of()
    effect = typed(book, "cool h100")
    assert isinstance(effect, RemovePlaceholders)
    (answer,) = book.tell(EffectFailed(effect.id, Trouble.REFUSED, "forbidden"))
    assert isinstance(answer, Answer)
    assert answer.text == "⚠️ I could not let it cool: forbidden. See how it is with `/gpu pools`."


# what is refused


@pytest.mark.parametrize(
    ("who", "text", "says"),
    [
        ("zoe", "warm h100", "You may not keep GPUs warm here. Ask anna or ben."),
        ("zoe", "cool h100", "You may not keep GPUs warm here. Ask anna or ben."),
        ("ben", "warm h100", "Pool `ci-training-h100` is not for you to keep warm. Ask anna."),
        (
            "anna",
            "warm h100 for=0m",
            "A pool can be kept warm for 1 to 120 minutes at a time.\n`/gpu warm h100 for=1m`",
        ),
        (
            "anna",
            "warm h100 for=9h",
            "A pool can be kept warm for 1 to 120 minutes at a time.\n`/gpu warm h100 for=120m`",
        ),
        (
            "anna",
            "warm h1000",
            f"{KNOWN}\n`/gpu warm h100`",
        ),
        (
            "anna",
            "cool @all",
            f"{KNOWN.replace('h1000', '@all')}\n`/gpu cool ci-training-h100`",
        ),
    ],
)
def test_refusals(who: str, text: str, says: str) -> None:
    """Who could, what there is, and a line to copy."""
    assert says == refused(book_of(), text, who)


def test_nobody_may_unless_the_configuration_says_so() -> None:
    """It costs money, so it is in no role by itself."""
    book = book_of(settings=replace(SETTINGS, pools=POOLS))
    assert refused(book, "warm h100") == "You may not keep GPUs warm here. Nobody may, as config.yaml stands."


def test_one_of_two_pools_with_the_same_gpu_has_to_be_named() -> None:
    """By its own name it is found."""
    twice = (Pool("a", "H100", "90"), Pool("b", "H100", "90"))
    book = book_of(settings=replace(ADMINS, pools=twice))

    assert refused(book, "warm h100") == "`h100` is the GPU of several pools: `a`, `b`.\n`/gpu warm a`"
    assert isinstance(typed(book, "warm b"), MakePlaceholder)


def test_without_pools_there_is_none() -> None:
    """And nothing to copy."""
    assert refused(book_of(settings=replace(ADMINS, pools=())), "warm x") == "No pool `x`. config.yaml names none."


def test_a_pool_that_is_kept_warm() -> None:
    """Its time can't be made longer; another pool has to wait, where the limit is one."""
    book = book_of(placeholder())

    assert refused(book, "warm h100") == (
        "**H100** is kept warm until 10:36 UTC already. For another time end this first.\n`/gpu cool h100`"
    )
    assert refused(book, "warm l4") == (
        "At most one pool is kept warm at a time; now it is **H100**.\n`/gpu cool ci-training-h100`"
    )


def test_more_than_one_pool_where_that_is_allowed() -> None:
    """Up to the limit; one that goes does not count."""
    two = replace(ADMINS, warm=Warm(max_pools=2))
    book = book_of(placeholder(), placeholder("gpu-warm-2", pool="another"), settings=two)

    assert refused(book, "warm l4") == (
        "At most 2 pools are kept warm at a time; now it is **H100** and **another**.\n`/gpu cool ci-training-h100`"
    )
    seen(book, PodSeen(placeholder("gpu-warm-2", pool="another", deleted="2026-03-02T10:06:00Z")))
    assert isinstance(typed(book, "warm l4"), MakePlaceholder)


def test_where_somebody_waits_a_node_comes_anyway() -> None:
    """There is nothing to warm."""
    book = book_of(pod("test", message=NO_GPU))
    says = "Somebody waits for an H100 already: a node comes for them, so there is nothing to warm.\n`/gpu queue`"
    assert says == refused(book, "warm h100")


def test_who_sees_no_pods_keeps_nothing_warm() -> None:
    """It could not give way."""
    book = book_of()
    book.tell(PoolsSeen(SourceHidden(Source.PODS)))
    assert refused(book, "warm h100") == "I can't see the pods at the moment, so I would not notice who needs the GPU."


# giving way


def removal(effects: list[Effect]) -> tuple[str, float]:
    """The pool and the time of the one removal."""
    (effect,) = [each for each in effects if not (isinstance(each, WakeAt) and each.key == WAKE_ALERTS)]
    assert isinstance(effect, RemovePlaceholders)
    return effect.pool, effect.before


def test_it_gives_way_when_the_scheduler_finds_no_place() -> None:
    """One that the scheduler has not looked at may still get another place; what waits elsewhere does not count."""
    book = book_of(placeholder(node="h100-a"))
    assert seen(book, PodSeen(pod("test"))) == []
    assert seen(book, PodSeen(pod("elsewhere", pool=L4, message=NO_GPU))) == []
    assert seen(book, PodSeen(pod("going", message=NO_GPU, deleted="2026-03-02T10:06:00Z"))) == []

    effects = seen(book, PodSeen(pod("test", message=NO_GPU)))

    assert (H100, NOW) == removal(effects)
    assert seen(book, PodSeen(pod("test", message=NO_GPU))) == []  # it is under way


def test_two_placeholders_do_not_drive_each_other_away() -> None:
    """Of a pod that does no work nobody is afraid."""
    book = book_of(placeholder(node="h100-a"))
    assert seen(book, PodSeen(placeholder("gpu-warm-2", message=NO_GPU))) == []


def test_only_the_holder_of_the_lease_removes() -> None:
    """And it looks when it becomes that."""
    book = book_of(placeholder(), leader=False)
    assert seen(book, PodSeen(pod("test", message=NO_GPU))) == []

    effect, *_ = book.tell(LeaseWon())
    assert isinstance(effect, RemovePlaceholders)
    (wake,) = book.tell(EffectDone(effect.id, ()))
    assert isinstance(wake, WakeAt)

    assert (H100, NOW) == removal(book.tell(Woke(WAKE_WARM)))


def test_a_bot_that_has_seen_no_pods_yet_removes_none() -> None:
    """It does when they are listed."""
    book = Playbook(settings=ADMINS)
    assert not [effect for effect in book.effects if isinstance(effect, RemovePlaceholders)]

    assert ("", NOW) == removal(book.tell(PoolsSeen(PodsListed((), everywhere=False))))


def test_a_removal_that_failed_is_tried_again() -> None:
    """In two seconds, later where the cluster asks for it, and seldom where it refuses."""
    for trouble, after, pause in (
        (Trouble.BUSY, None, 2.0),
        (Trouble.BUSY, 9.0, 9.0),
        (Trouble.REFUSED, None, 60.0),
    ):
        book = book_of(placeholder())
        (effect,) = seen(book, PodSeen(pod("test", message=NO_GPU)))
        assert isinstance(effect, RemovePlaceholders)

        (wake,) = book.tell(EffectFailed(effect.id, trouble, "no", retry_after=after))

        assert WakeAt(WAKE_WARM, NOW + pause) == wake
        assert (H100, NOW) == removal(book.tell(Woke(WAKE_WARM)))


def test_one_that_was_removed_needs_no_second_look() -> None:
    """It shows as a pod that goes."""
    book = book_of(placeholder())
    (effect,) = seen(book, PodSeen(pod("test", message=NO_GPU)))
    assert isinstance(effect, RemovePlaceholders)
    seen(book, PodSeen(placeholder(deleted="2026-03-02T10:06:00Z")))
    seen(book, PodSeen(placeholder(), gone=True))

    assert book.tell(EffectDone(effect.id, ("gpu-warm-1",))) == []


# its end


def test_it_ends_when_its_time_is_over() -> None:
    """The wake-up is asked for once, whatever else is seen; no kubelet counts the time of a pod without a node."""
    book = book_of(placeholder())
    assert UNTIL == book.state.wakes[WAKE_WARM]
    assert seen(book, PodSeen(pod("other", pool=L4))) == []

    book.now = UNTIL

    assert ("", UNTIL) == removal(book.tell(Woke(WAKE_WARM)))


@pytest.mark.parametrize("until", ["", "soon", "-5", "²"])
def test_one_whose_end_can_not_be_read_ends_at_once(until: str) -> None:
    """Somebody wrote its label anew."""
    book = book_of()
    assert ("", NOW) == removal(seen(book, PodSeen(placeholder(until=until))))


def test_what_is_left_of_one_that_ended_is_removed() -> None:
    """Its object would stay for ever."""
    book = book_of(placeholder())
    assert ("", NOW) == removal(seen(book, PodSeen(placeholder(phase="Failed"), gone=True)))


def test_without_the_lease_nothing_is_asked_for() -> None:
    """Whoever holds it does that."""
    book = book_of(placeholder())
    book.tell(LeaseLost())
    assert book.tell(Woke(WAKE_WARM)) == []
    assert seen(book, PodSeen(placeholder(phase="Failed"), gone=True)) == []


def test_it_shows_as_what_it_is() -> None:
    """On the line of its pool, and among those who wait."""
    book = book_of(placeholder(node="h100-a"), placeholder("gpu-warm-2", pool=L4, message=NO_GPU))
    effect = typed(book, "status")
    assert isinstance(effect, Answer)
    assert re.search(r"\*\*H100\*\*.* · a placeholder until 10:36", effect.text)
    assert "⏳ a placeholder until 10:36 waits for an L4 since 09:50" in effect.text


def test_amounts() -> None:
    """Of money and of time."""
    assert ("€1,234.50", "0.07 EUR") == (money(1234.5, "€"), money(0.0683, "EUR"))
    assert ("2 min", "1 h 5 min", "1,000 h") == (hours(120), hours(3900), hours(3_600_000))
    assert ("30 min", "1 h", "1 h 30 min", "0 min") == (span(30), span(60), span(90), span(0))
