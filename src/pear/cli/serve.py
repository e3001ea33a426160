"""How does a lender open the page, and make or revoke keys for it?

Each setting of the service is an option here, a variable of the environment, or a line of a file.
"""

from __future__ import annotations

import inspect
import os
import shutil
import signal
import socket
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from pear.errors import InvalidSetting, ModelError, ModelWarning, WorkerFailed
from pear.optional import require

try:
    from pear.service.settings import Settings, Stated
except ImportError:  # Without the extra, the command says what to install.
    Settings = Stated = None  # type: ignore[assignment, misc]


def command(
    problem: Annotated[
        Path | None, typer.Argument(help="The problem file; may be left out with --demo.")
    ] = None,
    new_key: Annotated[str, typer.Option(help="Make a key of this name, show it, exit.")] = "",
    key_roles: Annotated[
        str, typer.Option(help="What the new key may do: create, read, administer.")
    ] = "create,read",
    key_owner: Annotated[str, typer.Option(help="Who answers for the new key.")] = "",
    key_days: Annotated[
        int, typer.Option(min=0, help="Days until the new key ends (0: never).")
    ] = 0,
    list_keys: Annotated[bool, typer.Option("--list-keys", help="List the keys, exit.")] = False,
    revoke_key: Annotated[str, typer.Option(help="Revoke the key of this id, exit.")] = "",
    export_answers: Annotated[
        Path | None,
        typer.Option(help="Write what people answered (JSON lines) for pear fit-prior, exit."),
    ] = None,
    **given: Any,
) -> None:
    """Serve the page and its API.

    $ pear serve --demo
    """
    for package in ("fastapi", "uvicorn", "sqlalchemy", "pydantic_settings"):
        require(package)
    given |= {"problem": problem and str(problem)}
    stated = Stated.read(**{name: value for name, value in given.items() if value is not None})
    if new_key:
        _make_key(stated.database, new_key, key_roles, key_owner, key_days)
    elif list_keys or revoke_key:
        _manage_keys(stated.database, list_keys, revoke_key)
    elif export_answers is not None:
        _export_answers(stated.database, stated.problem, export_answers)
    else:
        with ended_in_order(), completed(stated) as settings:
            _check(settings)
            place = f"http://{settings.host}:{settings.port}"
            typer.echo(f"PEAR at {place}")
            if settings.demo_key:
                typer.echo(f"Lender's side at {place}/lender with the key {settings.demo_key}")
            run(settings)


def _with_every_setting(function: Any) -> Any:
    """The command with an option for each setting; all are None where they are not given."""
    stated = [
        parameter
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    settings = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_option_type(field.annotation), _option(name, field)],
        )
        for name, field in (Settings.model_fields.items() if Settings is not None else ())
        if name != "problem"
    ]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*stated, *settings)]
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    return function


def _option_type(annotation: Any) -> Any:
    known = annotation if annotation in (int, float, bool) else str
    return known | None


def _option(name: str, field: Any) -> Any:
    default = ",".join(field.default) if isinstance(field.default, tuple) else field.default
    shown = False if default in ("", False) else str(default)
    switch = f"--{name.replace('_', '-')}"
    names = (f"{switch}/--no-{switch[2:]}",) if field.annotation is bool else (switch,)
    return typer.Option(*names, help=field.description, show_default=shown)


_with_every_setting(command)


def run(settings: Any, app: Any = "pear.service.app:from_environment") -> None:
    """Run the web processes until they are stopped; ``app`` is one, or where they find it."""
    from pear.service.operation import BACKLOG, SHARED_COUNTS

    os.environ |= settings.to_environment()
    with ExitStack() as until_the_end:
        if settings.workers > 1:
            counts = tempfile.TemporaryDirectory(prefix="pear-counts-")
            os.environ[SHARED_COUNTS] = until_the_end.enter_context(counts)
        require("uvicorn").run(
            app,
            factory=isinstance(app, str),
            http="pear.service.operation:GuardedConnection",
            ws="none",
            backlog=BACKLOG,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=10,
        )


def _own_names(settings: Stated) -> tuple[str, ...]:
    """The names this service is reached by where none are stated."""
    own = urlsplit(settings.base_url).hostname
    names = ("localhost", "127.0.0.1", "[::1]", socket.gethostname(), settings.host, own)
    return tuple(dict.fromkeys(name.lower() for name in names if name and name != "0.0.0.0"))


def _check(settings: Any) -> None:
    """Refuse a problem, model or database that cannot be used, in one line, before anything
    starts."""
    from pear.elicitation.words import catalogue
    from pear.preferences import stored_prior
    from pear.service.engine import stated_problem
    from pear.service.service import PACKAGE
    from pear.service.store.tables import open_engine, upgrade

    check_address(settings.host, settings.port)
    if settings.oidc_issuer:
        require("authlib.integrations.httpx_client")
    if settings.traces:
        require("opentelemetry.exporter.otlp.proto.http")
    if settings.language:
        catalogue(settings.language, PACKAGE)
    problem = stated_problem(settings.problem)
    if settings.prior:
        stored_prior(settings.prior, problem)
    if settings.model:
        _check_model(settings, problem)
    upgrade(open_engine(settings.database))


def check_address(host: str, port: int) -> None:
    """Refuse an address that nobody can listen on now, before anything is started."""
    try:
        [family, *_, place] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
    except OSError as error:
        raise InvalidSetting(
            f"nobody can listen on {host}, port {port} ({error.strerror or error}); give another "
            "--port or --host, or stop what listens there"
        ) from None


def _check_model(settings: Any, problem: Any) -> None:
    """Load the model once in a process that may be ended: a model that takes too long, or too much
    memory, is reported and harms nothing else."""
    from pear.parallel import Worker
    from pear.service.engine import START_SECONDS

    made = partial(_doubts, settings.model, settings.agree, settings.versions, problem)
    loading = Worker(made, attempts=1, start_seconds=START_SECONDS)
    try:
        for doubt in loading.submit("copy").result():
            warnings.warn(doubt, ModelWarning, stacklevel=2)
    except WorkerFailed:
        raise ModelError(
            f"the model '{settings.model}' was not loaded within {START_SECONDS:.0f} seconds, or "
            "its process was killed while it loaded; look at the size of the file and at the "
            "memory there is"
        ) from None
    finally:
        loading.stop()


def _doubts(model: str, agree: float, versions: str, problem: Any) -> list[str]:
    """The warnings about the models while they are loaded."""
    from pear.decision import load_model, load_models

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ModelWarning)
        load_model(model, problem, agree=agree)
        if versions:
            load_models([versions], problem)
    return [str(one.message) for one in told if issubclass(one.category, ModelWarning)]


def _own_places(problem: Path) -> dict[str, str]:
    """Where the problem file itself says that its model and its prior are, if it does."""
    from pear.problem.files import load_problem, model_location, prior_location

    stated = load_problem(problem)
    return {
        "model": str(model_location(stated, problem) or ""),
        "prior": prior_location(stated, problem) or "",
    }


@contextmanager
def ended_in_order() -> Iterator[None]:
    """On a signal to end, remove what was there for this run only, and end without an error.

    The server finishes its work first, and then restores what the signal did before.
    """

    def leave(*_: object) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def completed(stated: Stated) -> Iterator[Settings]:
    """The settings, with what a problem file or the demonstration brings where nothing is stated.

    The demonstration has a lender's key, and a database that is removed afterwards.
    """
    from pear.service.lender.staff import new_key

    missing: dict[str, Any] = {}
    folder = None
    if stated.problem:
        place = Path(stated.problem)
        missing = _own_places(place)
    elif stated.demo:
        # There is no lender to ask.
        missing = {"demo_key": new_key(), "confirm_corrections": False}
        if "database" not in stated.model_fields_set:
            folder = tempfile.mkdtemp(prefix="pear-demo-")
            missing["database"] = f"sqlite:///{Path(folder) / 'pear.db'}"
    if not stated.trusted_hosts:
        missing["trusted_hosts"] = _own_names(stated)
    try:
        yield Settings(**{**missing, **stated.model_dump(exclude_unset=True)})
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _export_answers(address: str, problem: str, output: Path) -> None:
    from pear.service.engine import stated_problem
    from pear.service.store.tables import upgrade
    from pear.service.store.upkeep import existing_database, write_answers

    stated = stated_problem(problem)
    database = existing_database(address)
    upgrade(database.engine)
    count = write_answers(database, stated, output)
    database.close()
    typer.echo(f"{count:,} conversations about this problem are in {output}.")


def _make_key(address: str, name: str, roles: str, owner: str, days: int) -> None:
    from pear.service.lender.staff import Keys
    from pear.service.store.database import Database
    from pear.service.store.tables import upgrade

    database = Database(address)
    upgrade(database.engine)
    stated = tuple(roles.replace(",", " ").split())
    key, entry = Keys(database).add(name, roles=stated, owner=owner, days=days or None)
    typer.echo(f"{key}\nThis is key {entry.id} ('{entry.name}'); it is shown this once.")
    database.close()


def _manage_keys(address: str, list_keys: bool, revoke_key: str) -> None:
    from pear.service.lender.staff import Keys
    from pear.service.store.tables import upgrade
    from pear.service.store.upkeep import existing_database

    database = existing_database(address)
    upgrade(database.engine)
    keys = Keys(database)
    if revoke_key and not keys.revoke(revoke_key):
        raise InvalidSetting(
            f"there is no key {revoke_key!r} to revoke; see them with 'pear serve --list-keys'"
        )
    if list_keys:
        for entry in keys.all():
            made = time.strftime("%Y-%m-%d", time.gmtime(entry.created_at))
            ended = "" if entry.valid else "  (revoked)" if entry.revoked_at else "  (ended)"
            may = f"may {', '.join(entry.roles)}"
            typer.echo(f"{entry.id}  {made}  {entry.name}  {may}  {entry.owner}{ended}")
    database.close()
