"""The kit to run it: its files fit each other and the settings there are, and the same command with
the same settings, secrets, database and a proxy with TLS serves people. The guide to backups is
followed to the letter."""

import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sqlalchemy import func, select
from tests.browser.conftest import free_port
from tests.service.helpers import PERSON, PROBLEM, Talk, running

from pear.decision import save_sklearn
from pear.problem.files import write_problem
from pear.service.settings import Settings
from pear.service.store.database import Database, Store
from pear.service.store.tables import conversations, events, metadata

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SETTINGS = {f"PEAR_{name.upper()}" for name in Settings.model_fields}
yaml = pytest.importorskip("yaml")


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def instructions():
    """The Containerfile's instructions, in order: (name, rest)."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def entry_point():
    [command] = [json.loads(rest) for name, rest in instructions() if name == "ENTRYPOINT"]
    return command


def env_file():
    lines = (DEPLOY / "pear.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


# The files


def test_the_image_is_built_of_what_is_there_and_runs_as_nobody_special():
    found = instructions()
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"}
    assert {name for name, _ in found} <= known
    for name, rest in found:
        if name == "FROM":
            assert re.fullmatch(r"\S+:\d[\w.-]+( AS \w+)?", rest), "a version, never the latest"
        if name == "COPY" and not rest.startswith("--from"):
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest
    stages = re.findall(r" AS (\w+)", " ".join(rest for name, rest in found if name == "FROM"))
    assert {s for _, rest in found for s in re.findall(r"--from=(\w+)", rest)} <= set(stages)
    assert [rest for name, rest in found if name == "USER"][-1] not in ("0", "root")
    [extras] = re.findall(r"\.\[([\w,-]+)\]", " ".join(rest for _, rest in found))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert entry_point() == ["pear", "serve"]
    assert "pear" in project["scripts"]
    stated = {v for name, rest in found if name == "ENV" for v in re.findall(r"(PEAR_\w+)=", rest)}
    assert stated <= SETTINGS


def test_the_parts_of_the_compose_file_fit_each_other():
    parts = compose()
    for name, service in parts["services"].items():
        assert re.search(r":\d", service["image"]) or "build" in service, f"{name}: a version"
        assert set(service.get("depends_on", ())) <= set(parts["services"])
        assert set(service.get("secrets", ())) <= set(parts["secrets"])
        assert set(service["networks"]) <= set(parts["networks"])
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("./") and source != "./problem":
                assert (DEPLOY / source).exists(), source
            elif not source.startswith("."):
                assert source in parts["volumes"]
        for needed, how in service.get("depends_on", {}).items():
            healthy = "healthcheck" in parts["services"][needed]
            own = any(name == "HEALTHCHECK" for name, _ in instructions())
            assert how["condition"] == "service_healthy"
            assert healthy or (needed == "pear" and own)
    pear, proxy = parts["services"]["pear"], parts["services"]["proxy"]
    assert "ports" not in pear, "only the proxy is reached from outside"
    assert "ports" not in parts["services"]["database"]
    assert (DEPLOY / pear["build"]["context"] / pear["build"]["dockerfile"]).is_file()
    address = proxy["networks"]["inside"]["ipv4_address"]
    assert pear["environment"]["PEAR_TRUSTED_PROXIES"] == address
    port = dict(re.findall(r"(PEAR_\w+)=(\d+)", str(instructions())))["PEAR_PORT"]
    assert f"reverse_proxy pear:{port}" in (DEPLOY / "Caddyfile").read_text()
    assert "\tlog" not in (DEPLOY / "Caddyfile").read_text(), "paths hold secrets"


def test_every_setting_of_the_kit_is_one_and_every_secret_a_file_of_one():
    files = {"PEAR_SETTINGS", "PEAR_SECRETS"}
    pear = compose()["services"]["pear"]
    assert set(pear["environment"]) <= SETTINGS | files
    assert set(env_file()) <= SETTINGS
    assert {name.upper() for name in pear["secrets"]} <= SETTINGS
    assert not {"PEAR_DATABASE", "PEAR_OIDC_SECRET"} & {*pear["environment"], *env_file()}
    limits = re.search(r"max_size (\d+)KiB", (DEPLOY / "Caddyfile").read_text())
    assert 1024 * int(limits[1]) >= Settings(demo=True).max_body


def test_every_setting_the_guide_names_is_one():
    named = set(re.findall(r"PEAR_[A-Z_]+\b(?!…)", GUIDE)) | {
        name.upper() for name in re.findall(r"`(pear_[a-z_]+)`", GUIDE) if "oidc" in name
    }
    assert named <= SETTINGS | {"PEAR_SETTINGS", "PEAR_SECRETS", "PEAR_NAME", "PEAR_"}


def test_every_metric_the_guide_names_is_one(client):
    client.get("/healthz")
    text = client.get("/metrics").text
    for name in re.findall(r"^\| `(pear_\w+)", GUIDE, re.MULTILINE):
        if "oidc" not in name:
            assert name in text, name


# The same processes, by the same command


class Proxy:
    """What the compose file puts in front: TLS, and whom a request comes from."""

    def __init__(self, folder, to):
        self.to, self.port = to, free_port()
        certificate, key = _certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.trust = ssl.create_default_context(cafile=str(certificate))
        plain = socket.create_server(("127.0.0.1", self.port))
        self.listener = context.wrap_socket(plain, server_side=True)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            with suppress(ssl.SSLError, ConnectionError):
                try:
                    connection, _ = self.listener.accept()
                except ConnectionError:
                    continue
                except OSError:
                    return
                self._pass_on(connection)

    def _pass_on(self, connection):
        with connection, socket.create_connection(("127.0.0.1", self.to), 60) as inside:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            head, _, body = request.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            while length and len(body) < int(length[1]):
                body += connection.recv(65536)
            head += b"\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https"
            inside.sendall(head + b"\r\n\r\n" + body)
            while part := inside.recv(65536):
                connection.sendall(part)


def _certificate(folder):
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "proxy.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "proxy.key").write_bytes(private)
    return folder / "proxy.crt", folder / "proxy.key"


def _model(folder):
    """A model for the small problem, as a file."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 99, 400),
            "income": rng.uniform(0, 5000, 400),
            "savings": rng.uniform(0, 9000, 400),
            "job": rng.choice(["none", "part", "full"], 400),
            "course": rng.random(400) < 0.5,
        }
    )
    good = table["income"] / 900 + table["savings"] / 2500 + (table["job"] == "full") > 5
    columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    model = make_pipeline(columns, LogisticRegression())
    return save_sklearn(model.fit(table, good), folder / "m.skops")


def ask(address, method="GET", body=None, headers=None, trust=None):
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(address, data, given, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60, context=trust) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@contextmanager
def kit(folder, database):
    """The service as the kit starts it; only its places are others."""
    port = free_port()
    proxy = Proxy(folder, port)
    places = {"/problem/problem.toml": "problem.toml", "/problem/model.onnx": "m.skops"}
    write_problem(PROBLEM, folder / "problem.toml")
    _model(folder)
    stated = {name: str(folder / places.get(v, v)) if v in places else v
              for name, v in env_file().items()}  # fmt: skip
    (folder / "pear.env").write_text("".join(f"{n}={v}\n" for n, v in stated.items()))
    (folder / "secrets").mkdir()
    (folder / "secrets" / "pear_database").write_text(database + "\n")
    environment = {
        **{n: v for n, v in os.environ.items() if not n.startswith("PEAR_")},
        **dict(re.findall(r"(PEAR_\w+)=(\S+)", str(instructions()).replace("'", " "))),
        **compose()["services"]["pear"]["environment"],
    }
    environment["PEAR_BASE_URL"] = re.sub(
        r"\$\{.*\}", f"localhost:{proxy.port}", environment["PEAR_BASE_URL"]
    )
    environment |= {
        "PEAR_TRUSTED_PROXIES": "127.0.0.1", "PEAR_SETTINGS": str(folder / "pear.env"),
        "PEAR_SECRETS": str(folder / "secrets"), "PEAR_PORT": str(port),
    }  # fmt: skip
    command = [sys.executable, "-m", *entry_point()]

    def pear(*options):
        return subprocess.run(
            [*command, *options], env=environment, cwd=folder, capture_output=True, text=True,
            check=True,
        ).stdout  # fmt: skip

    log = (folder / "log").open("w")
    served = subprocess.Popen(
        command, env=environment, cwd=folder, stderr=log, stdout=log, start_new_session=True
    )
    try:
        end = time.monotonic() + 120
        while True:
            with suppress(OSError):
                if ask(f"http://127.0.0.1:{port}/readyz")[0] == 200:
                    break
            assert served.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.2)
        yield proxy, port, pear
        served.send_signal(signal.SIGTERM)
        assert served.wait(60) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(served.pid, signal.SIGKILL)
        proxy.listener.close()
        log.close()


@pytest.mark.slow
def test_the_kit_serves_people_over_tls_with_its_settings_and_secrets(tmp_path, address):
    with kit(tmp_path, address) as (proxy, port, pear):
        key = pear("--new-key", "Back office", "--key-roles", "create,administer").split()[0]
        lender = {"Authorization": f"Bearer {key}"}
        place = f"https://localhost:{proxy.port}"
        status, text = ask(
            f"{place}/api/v1/conversations", "POST", {"record": PERSON}, lender, proxy.trust
        )
        assert status == 201, text
        link = json.loads(text)["link"]
        assert link.startswith(f"{place}/c/")
        status, text = ask(link, headers={"Accept": "text/html"}, trust=proxy.trust)
        assert status == 401, "the kit has people choose a PIN"
        assert "PIN" in text
        status, text = ask(f"{place}/api/v1/audit", headers=lender, trust=proxy.trust)
        assert json.loads(text)[1]["address"] == "203.0.113.9", "not the proxy's own"
        outside = {"Host": "evil.example", "X-Forwarded-For": "1.2.3.4"}
        assert ask(f"http://127.0.0.1:{port}/lender", headers=outside)[0] == 400
        token = link.rpartition("/")[2]
    log = (tmp_path / "log").read_text()
    assert '"event": "request"' in log
    assert token not in log
    assert key not in log


# The guide to backups


def followed(step, folder, **environment):
    """Run what the guide says for a step, to the letter."""
    [commands] = re.findall(rf"<!-- followed: {step} -->\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    done = subprocess.run(
        ["bash", "-eu", "-c", commands],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _counts(database):
    with database.reading() as connection:
        return [
            connection.execute(select(func.count()).select_from(table)).scalar()
            for table in (conversations, events)
        ]


def test_a_backup_made_by_the_guide_is_restored_by_it(settings, tmp_path):
    kind = settings.database.partition(":")[0].partition("+")[0]
    environment = {"DATABASE": settings.database.replace("+psycopg", "")}
    if kind == "postgresql":
        database = Database(settings.database)
        with database.reading() as connection:
            own = "SELECT setting FROM pg_config WHERE name = 'BINDIR'"
            tools = connection.exec_driver_sql(own).scalar()
        database.close()
        environment["PATH"] = f"{tools}:{os.environ['PATH']}"
    with running(settings) as client:
        talk = Talk(client)
        talk.answer(0)
        before = talk.read()
        followed(f"{kind} backup", tmp_path, **environment)
        [backup] = tmp_path.glob("backup.*")
        assert backup.stat().st_mode & 0o077 == 0, "it is nobody else's to read"
        counts = _counts(client.service.database)
        talk.answer(1)
        later = Talk(client)
    if kind == "postgresql":
        database = Database(settings.database)
        with database.writing() as connection:
            metadata.drop_all(connection)
        database.close()
    followed(f"{kind} restore", tmp_path, **environment)
    with running(settings) as client:
        talk.client = client
        assert _counts(client.service.database) == counts
        assert talk.read() == before
        assert Store(client.service.database).by_token(later.token) is None
        log = client.service.keys.log()
        assert any(entry["action"] == "make link" for entry in log)
        assert talk.answer(0).status_code == 200


def test_the_secrets_of_the_guide_are_made_and_nobody_elses(tmp_path):
    (tmp_path / "deploy").mkdir()
    [commands] = re.findall(r"```sh\n(cd deploy\n.*?)```", GUIDE, re.DOTALL)
    subprocess.run(["bash", "-eu", "-c", commands], cwd=tmp_path, check=True)
    secrets = tmp_path / "deploy" / "secrets"
    named = {Path(one["file"]).name for one in compose()["secrets"].values()}
    assert {file.name for file in secrets.iterdir()} == named
    password = (secrets / "postgres_password").read_text()
    assert password in (secrets / "pear_database").read_text()
    assert Database((secrets / "pear_database").read_text()).url.host == "database"
    assert all(file.stat().st_mode & 0o077 == 0 for file in secrets.iterdir())
    assert shlex.quote(password).count(password) == 1
