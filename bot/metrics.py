"""Counters and times, in one registry a process part: two bots in one test do not share them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Everything that is counted. Labels are few and bounded: no names of runs, users or channels."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.calls = Histogram(
            "gputest_call_seconds",
            "Calls to another system, by system, operation and outcome",
            ["system", "operation", "outcome"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.events = Counter("gputest_events", "Events taken in, by type", ["event"], registry=self.registry)
        self.effects = Counter(
            "gputest_effects", "Effects performed, by type and outcome", ["effect", "outcome"], registry=self.registry
        )
        self.watch_gaps = Counter(
            "gputest_watch_gaps", "Watches that had to list again, by resource", ["resource"], registry=self.registry
        )
        self.doubles = Counter("gputest_doubles", "Cards found twice and removed", registry=self.registry)
        self.aside = Counter("gputest_events_set_aside", "Events that could not be digested", registry=self.registry)
        self.listening = Gauge(
            "gputest_chat_listening", "1 while the websocket of the chat stands", registry=self.registry
        )
        self.leader = Gauge("gputest_leader", "1 while this process may speak about runs", registry=self.registry)
        self.held = Gauge("gputest_runs_held", "Runs that are owed something", registry=self.registry)

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)
