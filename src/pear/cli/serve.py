"""How does a lender open the page, and make or revoke keys for it?"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from pear.errors import InvalidSetting
from pear.optional import require


def command(
    problem: Annotated[
        Path | None, typer.Argument(help="The problem file; may be left out with --demo.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="An .onnx or .skops file or an endpoint; else the problem's own.")
    ] = "",
    demo: Annotated[
        bool, typer.Option("--demo", help="Open the built-in loan book with invented people.")
    ] = False,
    database: Annotated[
        str,
        typer.Option(help="sqlite:///FILE or postgresql+psycopg://… (default sqlite:///pear.db)."),
    ] = "",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(help="Web processes.")] = 1,
    searchers: Annotated[
        int, typer.Option(help="Search processes per web process (0: one for each processor).")
    ] = 0,
    base_url: Annotated[str, typer.Option(help="The address in links, if not this one.")] = "",
    human_link: Annotated[
        str, typer.Option(help="Where to ask for a person (https:, mailto:).")
    ] = "",
    correct_data_link: Annotated[str, typer.Option(help="Where to correct data.")] = "",
    expiry_days: Annotated[int, typer.Option(help="Days until a link ends.")] = 30,
    retention_days: Annotated[int, typer.Option(help="Days until an ended link is deleted.")] = 90,
    choices: Annotated[int, typer.Option(help="Plans per question: 2, 3 or 4.")] = 2,
    secure_cookies: Annotated[bool, typer.Option(help="Send cookies over HTTPS only.")] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    new_key: Annotated[str, typer.Option(help="Make a key of this name, show it, exit.")] = "",
    list_keys: Annotated[bool, typer.Option("--list-keys", help="List the keys, exit.")] = False,
    revoke_key: Annotated[str, typer.Option(help="Revoke the key of this id, exit.")] = "",
    export_answers: Annotated[
        Path | None,
        typer.Option(help="Write what people answered (JSON lines) for pear fit-prior, exit."),
    ] = None,
) -> None:
    """Serve the page and its API.

    $ pear serve --demo
    """
    require("fastapi")
    require("uvicorn")
    require("sqlalchemy")
    address = database or ("" if demo else "sqlite:///pear.db")
    if new_key or list_keys or revoke_key:
        _manage_keys(address or "sqlite:///pear.db", new_key, list_keys, revoke_key)
        return
    if export_answers is not None:
        _export_answers(address or "sqlite:///pear.db", problem, export_answers)
        return
    from pear.service.security import new_key as random_key
    from pear.service.settings import Settings

    settings = Settings(
        problem=str(problem) if problem else "",
        model=model or _own_model(problem),
        prior=_own_prior(problem),
        demo=demo,
        database=address or _demo_database(),
        base_url=base_url,
        searchers=searchers or max(1, os.cpu_count() or 1),
        expiry_days=expiry_days,
        retention_days=retention_days,
        choices=choices,
        human_link=human_link,
        correct_data_link=correct_data_link,
        secure_cookies=secure_cookies,
        log_level=log_level,
        demo_key=random_key() if demo and not problem else "",
    )
    _check(settings)
    typer.echo(f"PEAR at http://{host}:{port}")
    if settings.demo_key:
        typer.echo(f"Lender's side at http://{host}:{port}/lender with the key {settings.demo_key}")
    run(settings, host=host, port=port, workers=workers)


def run(settings: Any, *, host: str, port: int, workers: int) -> None:
    """Run the web processes until they are stopped."""
    from pear.service.settings import ENVIRONMENT

    if workers < 1:
        raise InvalidSetting(f"'workers' must be at least 1 (got {workers!r})")
    os.environ[ENVIRONMENT] = settings.to_json()
    require("uvicorn").run(
        "pear.service.app:from_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
    )


def _check(settings: Any) -> None:
    """Say what is wrong with problem, model or database now, in one line, not later."""
    from pear.service.database import Database
    from pear.service.sources import problem_of

    problem = problem_of(settings)
    if settings.model:
        from pear.decision.adapters import load_model

        load_model(settings.model, problem)
    database = Database(settings.database)
    database.upgrade()
    database.close()


def _own_model(problem: Path | None) -> str:
    """The model that the problem file itself names, if any."""
    if problem is None:
        return ""
    from pear.problem.files import load_problem, model_location

    return str(model_location(load_problem(problem), problem) or "")


def _own_prior(problem: Path | None) -> str:
    """The prior that the problem file itself names, once it can be read."""
    if problem is None:
        return ""
    from pear.portfolio.beliefs import read_prior
    from pear.problem.files import load_problem, prior_location

    stated = load_problem(problem)
    read_prior(stated, problem, None)
    return prior_location(stated, problem) or ""


def _demo_database() -> str:
    return f"sqlite:///{Path(tempfile.mkdtemp(prefix='pear-demo-')) / 'pear.db'}"


def _export_answers(address: str, problem: Path | None, output: Path) -> None:
    from pear.service.answers import existing_database, write_answers
    from pear.service.sources import stated_problem

    stated = stated_problem(problem)
    database = existing_database(address)
    database.upgrade()
    count = write_answers(database, stated, output)
    database.close()
    typer.echo(f"{count:,} conversations about this problem are in {output}.")


def _manage_keys(address: str, new_key: str, list_keys: bool, revoke_key: str) -> None:
    from pear.service.database import Database
    from pear.service.keys import Keys

    database = Database(address)
    database.upgrade()
    keys = Keys(database)
    if new_key:
        key, entry = keys.add(new_key)
        typer.echo(f"{key}\nThis is key {entry.id} ('{entry.name}'); it is shown this once.")
    if revoke_key and not keys.revoke(revoke_key):
        raise InvalidSetting(
            f"there is no key {revoke_key!r} to revoke; see them with 'pear serve --list-keys'"
        )
    if list_keys:
        for entry in keys.list():
            made = time.strftime("%Y-%m-%d", time.gmtime(entry.created_at))
            typer.echo(
                f"{entry.id}  {made}  {entry.name}{'  (revoked)' if entry.revoked_at else ''}"
            )
    database.close()
