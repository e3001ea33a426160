"""An engine that does as told, light enough to start in many processes."""

import os
import signal
import time
from pathlib import Path

from pear.errors import InvalidRecord


class FakeEngine:
    def __init__(self, version=None):
        self.version = Path(version).read_text() if version else "fake"

    def facts(self):
        return {"model_fingerprint": self.version}

    def double(self, number):
        return 2 * number

    def process(self):
        return os.getpid()

    def wait(self, seconds):
        time.sleep(seconds)
        return "waited"

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def die_once(self, marker):
        if not Path(marker).exists():
            Path(marker).touch()
            self.die()
        return "second time"

    def refuse(self):
        raise InvalidRecord("'age' is missing")

    def fail(self):
        raise ZeroDivisionError("income was 1500")


def broken_engine():
    raise InvalidRecord("the model cannot be loaded")
