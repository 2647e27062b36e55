"""The result of a scenario: its figures and notes."""

from dataclasses import dataclass, field

from warren.cli.perf.histogram import Histogram
from warren.cli.perf.traffic import Traffic
from warren.cli.perf.worker_group import LoadSnapshot

PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}


@dataclass(slots=True)
class Result:
    """Figures by name, which ends with the unit, and notes."""

    scenario: str
    settings: dict[str, object]
    figures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_costs(self, start: LoadSnapshot, end: LoadSnapshot, count: int, *, unit: str = "message") -> None:
        """Add the CPU time per message, or other unit, of the broker and this tool between two snapshots."""
        elapsed_s = end.at_s - start.at_s
        broker_s = end.broker.cpu_s - start.broker.cpu_s
        client = [after.cpu_s - before.cpu_s for before, after in zip(start.client, end.client, strict=True)]
        if end.broker.resident_bytes:
            self.figures["broker_cores"] = broker_s / elapsed_s
            self.figures["broker_resident_bytes"] = end.broker.resident_bytes
            if count:
                self.figures[f"broker_cpu_us_per_{unit}"] = broker_s / count * 1e6
        if count:
            self.figures[f"client_cpu_us_per_{unit}"] = sum(client) / count * 1e6
        busiest = max(client) / elapsed_s
        self.figures["client_busiest_process_cores"] = busiest
        if busiest > 0.9:
            self.notes.append(
                f"a process of this tool used {busiest:.0%} of a core: it may have limited the rate; "
                "try more --processes"
            )

    def add_percentiles(self, name: str, histogram: Histogram) -> None:
        """Add percentiles of latencies; the histogram has nanoseconds, the figures microseconds."""
        if not len(histogram):
            return
        for label, percent in PERCENTILES.items():
            self.figures[f"{name}_{label}_us"] = histogram.percentile(percent) / 1e3
        self.figures[f"{name}_max_us"] = histogram.value_max / 1e3


def traffic_result(scenario: str, settings: dict[str, object], traffic: Traffic) -> Result:
    """Return the result of a load."""
    result = Result(scenario, settings)
    before, after = traffic.start.totals, traffic.end.totals
    elapsed_s = traffic.end.at_s - traffic.start.at_s
    published = after.published - before.published
    consumed = after.consumed - before.consumed
    figures = result.figures
    figures["duration_s"] = elapsed_s
    figures["published_per_s"] = published / elapsed_s
    figures["consumed_per_s"] = consumed / elapsed_s
    if traffic.load.confirm_window:
        figures["confirmed_per_s"] = (after.settled - before.settled) / elapsed_s
        if after.nacked:
            result.notes.append(f"the broker rejected {after.nacked} messages")
    result.add_costs(traffic.start, traffic.end, consumed if traffic.load.consumers else published)
    result.add_percentiles("delivery", traffic.latencies.since_due)
    result.add_percentiles("delivery_since_sent", traffic.latencies.since_sent)
    result.add_percentiles("confirm", traffic.latencies.confirm)
    if traffic.load.consumers and not consumed:
        result.notes.append("nothing was consumed")
    return result
