"""What the conductor tells its caller when a data set ends early or says things twice."""

from pear.parallel import conductor
from pear.parallel.conductor import Conductor


def conduct(monkeypatch, passes, tasks=3, attempts=2):
    """Outcomes told for tasks handed in, where each pass of the data set gives some numbers."""
    asked = []

    def outcomes(workers, known=None):
        asked.append(known)
        for number in passes[len(asked) - 1] if len(asked) <= len(passes) else []:
            yield {"number": number, "state": "done", "content": b"%d" % number}

    monkeypatch.setattr(conductor, "_outcomes", outcomes)
    monkeypatch.setattr(conductor.threading.Thread, "start", lambda self: None)
    told = Conductor(b"", 2, attempts)
    for number in range(tasks):
        told.put(number, b"")
    told.end()
    told._conduct()
    return [told.next()[:2] for _ in range(tasks)], asked


def test_what_a_data_set_ends_without_is_done_again(monkeypatch):
    outcomes, asked = conduct(monkeypatch, [[0, 2], [1]])
    assert outcomes == [(0, "done"), (2, "done"), (1, "done")]
    assert asked == [None, [1]]


def test_a_task_that_never_comes_back_is_lost_and_nobody_waits_for_it(monkeypatch):
    outcomes, asked = conduct(monkeypatch, [[0, 2]])
    assert outcomes == [(0, "done"), (2, "done"), (1, "lost")]
    assert asked == [None, [1], [1]]


def test_an_outcome_is_told_once_though_ray_repeats_it(monkeypatch):
    outcomes, _ = conduct(monkeypatch, [[0, 0, 1, 0, 2]])
    assert outcomes == [(0, "done"), (1, "done"), (2, "done")]
