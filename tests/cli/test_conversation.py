"""The conversation at a real terminal: keys, undo, limits, quitting, Ctrl-C, going on."""

import json
import os
import re
import subprocess
import sys

import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pear.datasets import loan_book_people, loan_book_problem, loan_book_table
from pear.decision import save_sklearn
from pear.problem import Plan
from pear.problem.files import write_problem
from tests.cli.terminal import Terminal


def logistic_lender(problem):
    """A lender's own model: a scikit-learn pipeline over the raw columns."""
    table = loan_book_table(4_000, seed=2)
    categories = [f.name for f in problem.space.features if f.is_categorical]
    numbers = [name for name in problem.space.names if name not in categories]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), categories), (StandardScaler(), numbers)
    )
    pipeline = make_pipeline(encode, LogisticRegression(max_iter=500))
    return pipeline.fit(table[list(problem.space.names)], table["approved"])


@pytest.fixture(scope="module")
def lender_folder(tmp_path_factory):
    """problem.toml, model.skops and person.json of the loan book."""
    folder = tmp_path_factory.mktemp("lender")
    problem = loan_book_problem()
    write_problem(problem, folder / "problem.toml")
    save_sklearn(logistic_lender(problem), folder / "model.skops")
    (folder / "person.json").write_text(json.dumps(loan_book_people()["Amina"]))
    return folder


FILES = ("problem.toml", "person.json", "--model", "model.skops")


def ask(folder, *more):
    return Terminal("ask", *FILES, *more, cwd=folder)


def kept(folder):
    return json.loads((folder / "person.conversations.jsonl").read_text())["events"]


@pytest.mark.slow
def test_the_demo_simulates_a_person_where_there_is_no_terminal():
    result = subprocess.run(
        [sys.executable, "-m", "pear", "demo", "--person", "Ben"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    parts = [
        "refused",
        "Question 1",
        "The person picks plan",
        "Your plan",
        "We tried every way",
        "regret",
    ]
    for part in [*parts, "Without it"]:
        assert part in result.stdout


def test_the_demo_asks_you_at_a_terminal():
    terminal = Terminal("demo")
    terminal.wait_for("quit")
    terminal.press("w")
    terminal.wait_for("Why the steps of plan B")
    terminal.wait_for("quit")
    assert "Without it" in terminal.screen
    terminal.press("a")
    terminal.wait_for("quit")
    terminal.press("z")
    terminal.wait_for("“z” is not one of the keys")
    terminal.press("f")
    terminal.wait_for("this one is fine")
    terminal.press("y")
    assert terminal.end() == 0
    assert "Your plan" in terminal.screen


@pytest.mark.slow
def test_the_demo_speaks_other_languages():
    result = subprocess.run(
        [sys.executable, "-m", "pear", "demo", "--person", "Ben", "--language", "de"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    for part in ("Frage 1", "Was würden Sie eher tun?", "Ihr Plan", "Punkte"):
        assert part in result.stdout


@pytest.mark.slow
def test_every_answer_is_kept_and_the_same_command_goes_on(lender_folder):
    first = ask(lender_folder, "--again")
    first.wait_for("quit")
    first.press("b")
    first.wait_for("quit")
    assert [event["kind"] for event in kept(lender_folder)] == ["answer"]
    first.interrupt()
    assert first.end() == 130
    assert "Nothing is lost" in first.screen
    assert len(kept(lender_folder)) == 1

    second = ask(lender_folder, "-o", "plan.json")
    second.wait_for("Going on after 1 answer")
    second.wait_for("quit")
    second.press("x")
    second.wait_for("Which of these is too hard?")
    second.press("1")
    second.wait_for("What exactly can’t you do?")
    second.press("1")
    second.wait_for("quit")
    assert [event["kind"] for event in kept(lender_folder)] == ["answer", "exclude"]
    second.press("u")
    second.wait_for("quit")
    second.press("u")
    second.wait_for("quit")
    assert kept(lender_folder) == []
    second.press("s")
    second.wait_for("quit")
    second.press("fy")
    assert second.end() == 0
    assert [event["kind"] for event in kept(lender_folder)] == ["answer", "accept"]
    plan = Plan.from_json((lender_folder / "plan.json").read_text())
    assert plan.success
    assert plan.certificate.verdict == "optimal"
    assert all(step.reason.startswith("Without it") for step in plan.steps)


def test_arrow_keys_answer_nothing_and_control_d_loses_nothing(lender_folder):
    terminal = ask(lender_folder, "--again")
    terminal.wait_for("quit")
    terminal.press("\x1b[A\x1b[B")  # they end in the letters of plans A and B
    terminal.press("\x04")
    assert terminal.end() == 130
    assert "Nothing is lost" in terminal.screen
    assert kept(lender_folder) == []


@pytest.mark.slow
def test_a_kept_conversation_that_is_damaged_is_named_with_the_way_out(lender_folder):
    (lender_folder / "damaged.json").write_bytes(b"\xff{")
    result = subprocess.run(
        [sys.executable, "-m", "pear", "ask", *FILES, "--conversation", "damaged.json"],
        cwd=lender_folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: 'damaged.json' cannot be read")
    assert "--conversation" in result.stderr


@pytest.mark.slow
def test_a_terminal_that_knows_few_letters_gets_plain_ones(lender_folder):
    result = subprocess.run(
        [sys.executable, "-m", "pear", "ask", *FILES, "--conversation", "plain.json"],
        cwd=lender_folder,
        input=b"x\n1\n1\nf\n",
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=240,
        check=True,
    )
    screen = result.stdout.decode("ascii")
    for part in ("EUR", "No plan will ask for that again", "Your plan", "can't"):
        assert part in screen


def test_quitting_keeps_the_answers(lender_folder):
    terminal = ask(lender_folder, "--again")
    terminal.wait_for("quit")
    terminal.press("q")
    assert terminal.end() == 0
    assert kept(lender_folder) == []


def test_undo_goes_back_even_where_no_plan_is_left(lender_folder):
    """Ruling out one step after the other ends in no plan; undo opens one again."""
    terminal = ask(lender_folder, "--again")
    for _ in range(20):
        seen = terminal.wait_for("quit")
        if "We found no plan" in seen:
            break
        terminal.press("x")
        terminal.wait_for("go back")
        terminal.press("1")
        if "What exactly" in terminal.wait_for("Noted", "this at all"):
            whole = re.findall(r"(\d)  I can’t change this at all", terminal.screen)[-1]
            terminal.press(whole)
            terminal.wait_for("Noted")
    else:
        raise AssertionError("there were always more plans")
    limits = len(kept(lender_folder))
    terminal.press("u")
    terminal.wait_for("Your plan")
    terminal.wait_for("quit")
    assert len(kept(lender_folder)) == limits - 1
    terminal.press("q")
    assert terminal.end() == 0


def test_undo_after_the_best_plan_so_far_leads_back_to_the_question(lender_folder):
    terminal = ask(lender_folder, "--again")
    terminal.wait_for("Question 1")
    terminal.wait_for("quit")
    terminal.press("f")
    terminal.wait_for("Your plan")
    terminal.wait_for("quit")
    terminal.press("u")
    terminal.wait_for("Question 1")
    terminal.wait_for("quit")
    terminal.press("q")
    assert terminal.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["problem.toml", "nobody.json", "--model", "model.skops"], "nobody.json"),
        (["problem.toml", "person.json"], "--model"),
        (["problem.toml", "broken.json", "--model", "model.skops"], "is not JSON"),
        (["problem.toml", "unknown.json", "--model", "model.skops"], "height"),
        (["nowhere.toml", "person.json", "--model", "model.skops"], "nowhere.toml"),
    ],
)
def test_wrong_input_is_one_line_and_no_traceback(lender_folder, arguments, message):
    (lender_folder / "broken.json").write_text("{")
    (lender_folder / "unknown.json").write_text('{"height": 3}')
    result = subprocess.run(
        [sys.executable, "-m", "pear", "ask", *arguments],
        cwd=lender_folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("width", [50, 80])
def test_no_amount_and_no_word_is_cut_in_two_where_the_terminal_is_narrow(width):
    terminal = Terminal("demo", "--language", "de", width=width)
    terminal.wait_for("aufhören")
    shown = terminal.screen.partition("Amina")[2]
    # What spins while a plan is looked for is drawn over itself.
    lines = [line for line in shown.splitlines() if "Wir suchen" not in line]
    assert max(map(len, lines)) <= width
    for whole in ("1.850 €", "6 Jahre", "13 Monate", "Monatseinkommen", "q für heute aufhören"):
        assert whole in shown, whole
    assert "…" not in shown.partition("Frage 1")[2]
    terminal.press("w")
    terminal.wait_for("Warum die Schritte von Plan B")
    terminal.wait_for("aufhören")
    terminal.press("q")
    assert terminal.end() == 0
