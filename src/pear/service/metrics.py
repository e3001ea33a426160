"""How is the service doing? Counters and durations in Prometheus' text format.

Only routes, status codes and counts: never an address with a token, never anyone's data.
"""

from __future__ import annotations

import threading
from collections import defaultdict

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends, in seconds, of the ranges that durations are counted in."""

HELP = {
    "pear_requests_total": ("counter", "Requests by method, route and status."),
    "pear_request_seconds": ("histogram", "Time from request to answer."),
    "pear_refused_total": ("counter", "Requests refused because every searcher was full."),
    "pear_conversations": ("gauge", "Stored conversations by stage."),
    "pear_searches_waiting": ("gauge", "Searches at work or waiting in this process."),
    "pear_searcher_restarts_total": ("counter", "Search processes replaced in this process."),
    "pear_ready": ("gauge", "1 when the database answers and a searcher runs."),
}

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts of one web process.

    >>> metrics = Metrics()
    >>> metrics.observe("GET", "/healthz", 200, 0.004)
    >>> 'pear_requests_total{method="GET",route="/healthz",status="200"} 1' in metrics.text({})
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[Labels, int] = defaultdict(int)
        self._durations: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._sums: dict[str, float] = defaultdict(float)
        self._refused = 0

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        place = next((i for i, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        with self._lock:
            self._requests[(("method", method), ("route", route), ("status", str(status)))] += 1
            self._durations[route][place] += 1
            self._sums[route] += seconds

    def refuse(self) -> None:
        """Count one refusal for want of room."""
        with self._lock:
            self._refused += 1

    def text(self, gauges: dict[str, dict[Labels, float]]) -> str:
        """Everything in Prometheus' text format, with the gauges of the moment."""
        with self._lock:
            samples: dict[str, list[str]] = {
                "pear_requests_total": [
                    _line("pear_requests_total", labels, count)
                    for labels, count in sorted(self._requests.items())
                ],
                "pear_request_seconds": self._histogram(),
                "pear_refused_total": [_line("pear_refused_total", (), self._refused)],
            }
        for name, values in gauges.items():
            samples[name] = [_line(name, labels, value) for labels, value in values.items()]
        lines = []
        for name, (kind, words) in HELP.items():
            if samples.get(name):
                lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *samples[name]]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name, lines = "pear_request_seconds", []
        for route, counts in sorted(self._durations.items()):
            below = 0
            for bound, count in zip((*BOUNDS, float("inf")), counts, strict=True):
                below += count
                end = "+Inf" if bound == float("inf") else f"{bound:g}"
                lines.append(_line(f"{name}_bucket", (("route", route), ("le", end)), below))
            lines.append(_line(f"{name}_sum", (("route", route),), self._sums[route]))
            lines.append(_line(f"{name}_count", (("route", route),), below))
        return lines


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {value:g}" if inside else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
