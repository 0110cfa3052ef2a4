"""The autoscaler's status in both forms, sound and broken: what is read of it, and what is said to be unreadable."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.core import autoscaler
from bot.core.autoscaler import (
    AutoscalerStatus,
    ErrorKind,
    Form,
    NodeGroup,
    read_status,
    short_group,
    shorten,
    without_probes,
    written_at,
)

CASES = Path(__file__).parents[1] / "cases"


def text_of(name: str) -> str | None:
    """The text of a ConfigMap among the cases; a file's first document."""
    document = next(yaml.safe_load_all((CASES / f"{name}.yaml").read_text(encoding="utf-8")))
    return document["data"].get("status")


def status_of(name: str) -> AutoscalerStatus:
    return read_status(text_of(name))


def test_backoff_is_seen_in_a_healthy_cluster() -> None:
    """Case b01: the cluster is Healthy, the GPU group is in backoff for quota, one node lacks its GPU, one is missing."""
    status = status_of("b01")
    cpu, gpu = status.groups

    assert (Form.YAML, "Healthy", True, "") == (status.form, status.health, status.running, status.problem)
    assert ("gke-demo-cpu-40ce0341-grp", 3, 3, 1, 10) == (
        cpu.short,
        cpu.ready,
        cpu.registered,
        cpu.smallest,
        cpu.largest,
    )
    assert cpu.error is None
    assert "gke-demo-gpu-l4-9b1c77aa-grp" == gpu.short
    assert (0, 1, 2, 0, 4) == (gpu.ready, gpu.registered, gpu.target, gpu.smallest, gpu.largest)
    assert (1, 1, 1) == (gpu.unready, gpu.without_resource, gpu.unregistered)
    assert gpu.in_backoff
    assert gpu.error is not None
    assert (ErrorKind.QUOTA, "QUOTA_EXCEEDED") == (gpu.error.kind, gpu.error.code)
    assert "Quota 'NVIDIA_L4_GPUS' exceeded; Limit: 1.0 in region us-central1" == gpu.error.text
    assert datetime(2026, 3, 2, 9, 58, 30, tzinfo=UTC) == gpu.error.at


def test_groups_by_uuid_are_both_there() -> None:
    """Case b03: two groups known by UUID only; the empty one is in backoff since nobody knows when."""
    first, second = status_of("b03").groups

    assert ("5a1d0c0e", "7be2f9d4") == (first.short, second.short)
    assert (0, 0, 0, 2) == (second.ready, second.target, second.smallest, second.largest)
    assert second.error is not None
    assert ("creation_error", "scaleway node could not be created", None) == (
        second.error.code,
        second.error.text,
        second.error.at,
    )


def test_the_oldest_form() -> None:
    """Limits are called min and max, there is no resourceUnready, and the year 1 is no time."""
    (group,) = status_of("autoscaler/text_2017_first_form").groups

    assert (
        NodeGroup(
            name="workers-p100",
            health="Unhealthy",
            ready=0,
            registered=1,
            unready=1,
            starting=0,
            target=5,
            smallest=5,
            largest=6,
            scale_up="NoActivity",
            scale_down="NoCandidates",
            candidates=0,
        )
        == group
    )


def test_a_group_that_grows_in_the_text_form() -> None:
    """From nothing to one: it grows, since a time that stands before a monotonic reading."""
    status = status_of("autoscaler/text_two_groups_growing")
    system, gpu = status.groups

    assert (Form.TEXT, "Healthy", "") == (status.form, status.health, status.problem)
    assert not system.growing
    assert ("CandidatesPresent", 1) == (system.scale_down, system.candidates)
    assert gpu.growing
    assert datetime(2026, 3, 2, 10, 5, 6, 260551, tzinfo=UTC) == gpu.scale_up_since


def test_the_text_form_gives_no_reason_for_a_backoff() -> None:
    """It is in backoff since then, and that is all there is."""
    (group,) = status_of("autoscaler/text_backoff_without_reason").groups

    assert group.in_backoff
    assert 1 == group.long_unregistered
    assert group.error is not None
    assert (ErrorKind.OTHER, "", "") == (group.error.kind, group.error.code, group.error.text)
    assert datetime(2026, 3, 2, 10, 4, 10, tzinfo=UTC) == group.error.at


@pytest.mark.parametrize("name", ["autoscaler/text_initializing", "autoscaler/yaml_initializing"])
def test_an_autoscaler_that_starts_is_not_broken(name: str) -> None:
    """Both forms say so, and know no groups yet."""
    status = status_of(name)

    assert not status.running
    assert () == status.groups
    assert "" == status.problem


def test_one_pool_in_two_zones_is_two_groups() -> None:
    """The zone without stock is told apart from the zone that grows."""
    first, second = status_of("autoscaler/yaml_out_of_stock_in_two_zones").groups

    assert first.in_backoff
    assert not first.growing
    assert first.error is not None
    assert ErrorKind.STOCK is first.error.kind
    assert (
        "The zone 'projects/sample/zones/europe-west4-a' does not have enough resources available to fulfill the request;"
        " Try a different zone, or try again later" == first.error.text
    )
    assert second.growing


def test_the_useful_sentence_of_a_wrapped_error() -> None:
    """Code and message of the provider, without its client's words and its link."""
    (group,) = status_of("autoscaler/yaml_azure_error").groups

    assert group.error is not None
    assert (ErrorKind.QUOTA, "OperationNotAllowed") == (group.error.kind, group.error.code)
    assert (
        "Operation results in exceeding quota limits of Core; Maximum allowed: 24, Current in use: 24, Additional"
        " requested: 24" == group.error.text
    )


def test_an_unhealthy_group() -> None:
    """Dates of the year 1 that YAML read as dates are no dates either."""
    (group,) = status_of("autoscaler/yaml_unhealthy").groups

    assert "Unhealthy" == group.health
    assert (2, 9, 5, 0, 1, 3) == (
        group.ready,
        group.registered,
        group.unready,
        group.without_resource,
        group.starting,
        group.long_unregistered,
    )
    assert group.scale_up_since is None
    assert group.growing  # twelve were asked for, nine are there
    assert "eks-gpu-5ac0ffee-1234-4abc-8def-000000000001" == group.short


def test_a_group_without_capacity() -> None:
    """No node of that kind is to be had; since when, nobody says. The other group could give up two nodes."""
    spot, cpu = status_of("autoscaler/yaml_aws_no_capacity").groups

    assert spot.in_backoff
    assert spot.error is not None
    assert (ErrorKind.STOCK, "placeholder-cannot-be-fulfilled", None) == (
        spot.error.kind,
        spot.error.code,
        spot.error.at,
    )
    assert (4, 2, 8, 2, None) == (cpu.ready, cpu.smallest, cpu.largest, cpu.candidates, cpu.error)


def test_a_machine_that_never_registers() -> None:
    """The group is called Healthy and grows; one machine is no node for long."""
    status = status_of("autoscaler/text_machine_that_never_registers")
    (group,) = status.groups

    assert "" == status.problem
    assert ("pool-a100-5f0c", "Healthy", True, None) == (group.short, group.health, group.growing, group.error)
    assert (0, 1, 1) == (group.registered, group.target, group.long_unregistered)
    assert datetime(2026, 3, 2, 9, 53, 12, 700000, tzinfo=UTC) == group.scale_up_since


def test_no_groups_is_no_fault() -> None:
    """An autoscaler without groups says nothing wrong."""
    status = status_of("autoscaler/yaml_no_groups")

    assert ((), "") == (status.groups, status.problem)


def test_wrong_types_are_unknown_and_the_rest_is_kept() -> None:
    """A count that is none is unknown; what has no name is said to be missing."""
    status = status_of("autoscaler/yaml_wrong_shapes")
    first, second = status.groups

    assert "2 of 4 groups have no name" == status.problem
    assert (3, None, None, None, None, None) == (
        first.registered,
        first.ready,
        first.starting,
        first.target,
        first.smallest,
        first.largest,
    )
    assert ("", None) == (first.scale_up, first.error)
    assert ("12345", True, None) == (second.name, second.in_backoff, second.scale_up_since)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("yaml_groups_as_mapping", "its nodeGroups are no list"),
        ("yaml_cut_off", "it is neither of the two known forms"),
        ("yaml_impossible_date", "it is neither of the two known forms"),
        ("not_the_autoscalers", "the ConfigMap has no key `status`"),
        ("a_sentence", "it is neither of the two known forms"),
        ("empty", "it is empty"),
        ("text_cut_off", "it breaks off in the group pool-gpu"),
        ("text_without_cluster", "it breaks off before its first part"),
    ],
)
def test_what_is_malformed_is_said_to_be_so(name: str, problem: str) -> None:
    """Nothing is guessed."""
    assert problem == status_of(f"autoscaler/{name}").problem


def test_what_could_be_read_of_a_cut_text_is_kept() -> None:
    """The first group is whole; of the second only what stands there."""
    first, second = status_of("autoscaler/text_cut_off").groups

    assert (4, 9) == (first.ready, first.largest)
    assert ("pool-gpu", 0, None) == (second.name, second.ready, second.largest)


def test_groups_without_a_cluster_are_kept() -> None:
    """The part on the whole cluster is missing: that is said, and the group is there."""
    status = read_status("Cluster-autoscaler status at x:\nNodeGroups:\n  Name: a\n  Health: Healthy (ready=1)\n")

    assert "it breaks off before its first part" == status.problem
    assert ("a", 1) == (status.groups[0].name, status.groups[0].ready)


@pytest.mark.parametrize("rest", ["", "\n", "\\nCluster-wide:\\n  Health: Healthy (ready=1)\\n"])
def test_a_text_of_one_line_is_not_an_autoscaler_that_starts(rest: str) -> None:
    """Cut off after its head, or with its line breaks lost on the way: nothing is known."""
    status = read_status(f"Cluster-autoscaler status at 2026-03-02 10:00:00 +0000 UTC:{rest}")

    assert status.running
    assert "it breaks off before its first part" == status.problem


def test_a_text_of_another_system_is_read_the_same() -> None:
    """Line ends of Windows, a mark at the start, blank lines before it."""
    text = text_of("autoscaler/text_two_groups_growing") or ""

    assert read_status(text).groups == read_status("\n" + text.replace("\n", "\r\n")).groups
    assert status_of("b01").groups == read_status("\ufeff" + (text_of("b01") or "").replace("\n", "\r\n")).groups


def test_a_group_without_its_target_grows_where_it_says_so() -> None:
    """Left out where it is none: what is not said stays unknown."""
    (group,) = read_status(
        "autoscalerStatus: Running\nnodeGroups:\n- name: a\n  health: {status: Healthy}\n  scaleUp: {status: InProgress}"
    ).groups

    assert (None, None, True) == (group.target, group.registered, group.growing)


def test_a_text_without_end_is_not_read() -> None:
    """A megabyte of it would hold up everybody else."""
    assert "it has 400001 characters" == read_status("x" * (autoscaler.MAX_TEXT + 1)).problem


@pytest.mark.parametrize("name", ["b01", "autoscaler/text_two_groups_growing"])
def test_probe_times_alone_change_nothing(name: str) -> None:
    """Two texts that differ in their probe times only are the same news."""
    text = text_of(name)
    assert text is not None
    later = text.replace("10:00:00.123456789", "10:00:10.3").replace("10:05:47", "10:05:57").replace("m=+238", "m=+248")

    assert later != text
    assert without_probes(text) == without_probes(later)
    assert without_probes(text) != without_probes(text.replace("InProgress", "NoActivity"))


def test_when_it_was_written() -> None:
    """Both forms say so in their first line; other texts don't."""
    assert datetime(2026, 3, 2, 10, 0, 0, 123456, tzinfo=UTC) == written_at(text_of("b01") or "")
    assert datetime(2026, 3, 2, 10, 5, 47, 683724, tzinfo=UTC) == written_at(
        text_of("autoscaler/text_two_groups_growing") or ""
    )
    assert datetime(2026, 3, 2, 10, 5, 40, tzinfo=UTC) == written_at(text_of("autoscaler/yaml_unhealthy") or "")
    assert datetime(2026, 3, 2, 8, 0, tzinfo=UTC) == written_at("time: 2026-03-02 10:00:00 +0200 CEST")
    assert written_at("nothing") is None
    assert written_at("time: 2026 or so") is None


@pytest.mark.parametrize(
    ("message", "code", "kind", "text"),
    [
        ("", "InsufficientInstanceCapacity", ErrorKind.STOCK, ""),
        (
            (
                "Launching a new EC2 instance. Status Reason: We currently do not have sufficient p5.48xlarge capacity in the"
                " Availability Zone you requested (eu-x-1a). Our system will be working on provisioning additional capacity."
                " You can currently get p5.48xlarge capacity by not specifying an Availability Zone in your request or choosing"
                " eu-x-1b. Learn more at https://example.com/capacity."
            ),
            "",
            ErrorKind.STOCK,
            (
                "We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested (eu-x-1a);"
                " Our system will be working on provisioning additiona…"
            ),
        ),
        (
            "You have requested more vCPU capacity than your current vCPU limit of 0",
            "VcpuLimitExceeded",
            ErrorKind.QUOTA,
            None,
        ),
        ("GCE quota exceeded. Pod is at risk of not being scheduled.", "", ErrorKind.QUOTA, "GCE quota exceeded"),
        ("IP space exhausted", "", ErrorKind.ADDRESSES, "IP space exhausted"),
        ("no servers available for L4-1-24G", "outOfResource", ErrorKind.STOCK, "no servers available for L4-1-24G"),
        ("UnfulfillableCapacity: Unable to fulfill capacity", "", ErrorKind.STOCK, None),
        ("Max spot instance count exceeded", "MaxSpotInstanceCountExceeded", ErrorKind.QUOTA, None),
        ("rpc error: code = Unavailable desc = try later", "cloudProviderError", ErrorKind.OTHER, None),
        ("403 forbidden: insufficient permissions", "", ErrorKind.RIGHTS, "403 forbidden: insufficient permissions"),
        ("Nodes failed to register within 15m0s", "", ErrorKind.TIMEOUT, "Nodes failed to register within 15m0s"),
        ("scaleway node could not be created", "creation_error", ErrorKind.OTHER, "scaleway node could not be created"),
        (
            "AWS cannot provision any more instances for this node group",
            "placeholder-cannot-be-fulfilled",
            ErrorKind.STOCK,
            None,
        ),
    ],
)
def test_errors_of_providers(message: str, code: str, kind: ErrorKind, text: str | None) -> None:
    """What they come down to, and their own words without what nobody reads."""
    error = shorten(message, code)

    assert kind is error.kind
    assert len(error.text) <= 160
    assert text is None or text == error.text


def test_short_names_of_groups() -> None:
    """The last part of an URL, eight digits of a UUID, else the name."""
    assert "l4-grp" == short_group("https://example.com/zones/z/instanceGroups/l4-grp")
    assert "7be2f9d4" == short_group("7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff")
    assert "7be2f9d4" == short_group("pools/7BE2F9D4-aaaa-4bbb-8ccc-ddddeeeeffff/").lower()
    assert "eks-gpu" == short_group("eks-gpu")


WHOLE = [text for name in ("b01", "b03", "autoscaler/text_two_groups_growing") if (text := text_of(name))]


@given(st.sampled_from(WHOLE), st.integers(0, 4000), st.text(max_size=20))
def test_no_damage_breaks_it(text: str, at: int, dirt: str) -> None:
    """Cut anywhere, or with anything in it: it is read as far as it goes, or said to be unreadable."""
    assert isinstance(read_status(text[:at]), AutoscalerStatus)
    assert isinstance(read_status(text[:at] + dirt + text[at:]), AutoscalerStatus)
