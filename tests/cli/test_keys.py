"""Single keys: what counts as one, what is ignored, what ends the conversation."""

import io
import os
import pty
import sys
import termios
import threading

import pytest

from pear.cli import keys


@pytest.fixture
def keyboard(monkeypatch):
    """A pseudo-terminal as standard input; what is written to the descriptor is typed."""
    control, inside = pty.openpty()
    with open(inside, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield control
    os.close(control)


@pytest.mark.parametrize(
    "typed",
    [
        b"b",
        b"B",
        b"zzb",
        b"\x1b[Ab",
        b"\x1b[A\x1b[C\x1b[Db",
        b"\x1bOAb",
        b"\x1b[1;5Ab",
        b"\x1b[15~b",
        b"\x1bab",
        b"\xc3\xa9b",
        b"\xff\xfeb",
    ],
)
def test_only_the_keys_asked_for_count_and_arrows_are_none_of_them(keyboard, typed):
    with keys.single_keys():
        os.write(keyboard, typed)
        assert keys.read_key("ab") == "b"


def test_a_lone_escape_is_no_answer(keyboard):
    others = []
    with keys.single_keys():
        os.write(keyboard, b"\x1b")
        later = threading.Timer(4 * keys.ESCAPE_SECONDS, os.write, (keyboard, b"b"))
        later.start()
        assert keys.read_key("ab", others.append) == "b"
    assert others == []


@pytest.mark.parametrize("early", [False, True])
def test_control_d_ends_it_even_when_pressed_before_keys_are_read(keyboard, early):
    if early:
        os.write(keyboard, b"\x04")
    with keys.single_keys():
        if not early:
            os.write(keyboard, b"\x04")
        with pytest.raises(EOFError):
            keys.read_key("ab")


def test_the_terminal_is_left_as_it_was(keyboard):
    before = termios.tcgetattr(sys.stdin.fileno())
    held = []

    def interrupted():
        with keys.single_keys():
            held.append(termios.tcgetattr(sys.stdin.fileno()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert held[0] != before
    assert termios.tcgetattr(sys.stdin.fileno()) == before


def test_without_a_terminal_the_first_letter_of_a_line_counts(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\nzzz\n  Bob\na\n"))
    with keys.single_keys():
        assert [keys.read_key("ab"), keys.read_key("ab")] == ["b", "a"]
        with pytest.raises(EOFError):
            keys.read_key("ab")


def test_where_single_keys_cannot_be_had_a_line_is_asked_for(keyboard, monkeypatch):
    monkeypatch.setitem(sys.modules, "termios", None)
    lines = iter(["", "maybe", "Alice"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    with keys.single_keys():
        assert keys.read_key("ab") == "a"
