"""What can go wrong, as one tree.

::

    PearError
    ├── InvalidInput            something given to us is not usable as it is
    │   ├── InvalidSetting      a parameter of one of our own functions
    │   ├── InvalidProblem      a problem file or its parts contradict themselves
    │   ├── InvalidRecord       a person's data do not fit the features
    │   ├── InvalidPlan         a plan file is damaged, or contradicts itself
    │   └── InvalidData         a table cannot be read or lacks columns
    ├── DataUnavailable         a data set is neither on this machine nor to be fetched
    ├── ModelError              the classifier cannot be used
    │   ├── ModelRefused        a model file we do not load, for safety
    │   ├── ModelOutput         the classifier returned something that is not a score
    │   └── EndpointFailed      a scoring endpoint did not answer
    ├── MissingExtra            an optional part of the package is not installed
    ├── BudgetTooSmall          a search was given fewer rows than it can start with
    ├── FingerprintMismatch     two things that belong together do not
    ├── ConversationError       an answer that does not fit the question asked
    └── WorkerFailed            a worker process kept dying

Warnings that come through Python's own channel: ModelWarning, a doubt about a model.
"""

from __future__ import annotations


class PearError(Exception):
    """Root of everything this package raises on purpose."""


class InvalidInput(PearError, ValueError):
    """Something given to us is not usable as it is."""


class InvalidSetting(InvalidInput):
    """A parameter of one of our own functions is out of its range."""


class InvalidProblem(InvalidInput):
    """A problem file, or the parts of a problem, contradict themselves.

    ``key`` is the key of ``problem.toml`` at fault, where one is.
    """

    key: str = ""


class InvalidRecord(InvalidInput):
    """A person's data do not fit the features of the problem."""


class InvalidPlan(InvalidInput):
    """A plan file is damaged, or contradicts itself."""


class InvalidData(InvalidInput):
    """A table cannot be read, or lacks the columns the problem needs."""


class DataUnavailable(PearError):
    """A data set is neither on this machine nor to be fetched."""


class ModelError(PearError):
    """The classifier cannot be used."""


class ModelRefused(ModelError):
    """A model file of a kind we do not load, because loading it could run its code."""


class ModelOutput(ModelError):
    """The classifier returned something that is not a score."""


class EndpointFailed(ModelError):
    """A scoring endpoint did not answer, or answered with an error."""


class MissingExtra(PearError, ImportError):
    """An optional part of the package is not installed."""


class BudgetTooSmall(PearError):
    """A search was given fewer rows than it can start with."""


class FingerprintMismatch(PearError):
    """Two things that belong together (a plan and a problem, say) do not."""


class ConversationError(PearError):
    """An answer that does not fit the question asked, or no question is open."""


class WorkerFailed(PearError):
    """A worker process kept dying on the same task."""


class ModelWarning(UserWarning):
    """Something about a model that somebody should look at before they trust it."""
