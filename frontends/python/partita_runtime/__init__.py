"""Runs models that Partita compiled: `partita_runtime.Session("model.partita").run(None, {name: array})`.

The package partita compiles them. Neither numpy nor torch nor jax is imported unless the caller has imported it, or gives lists.
"""

from .errors import DataLossError, InternalError, InvalidError, MissingError, NoMemoryError, PartitaError, UnavailableError
from .generator import Generator
from .native import lib as _lib
from .session import ParameterInfo, Session, TensorInfo

__version__ = _lib.partita_version().decode()
__all__ = ["DataLossError", "Generator", "InternalError", "InvalidError", "MissingError", "NoMemoryError", "ParameterInfo", "PartitaError",
           "Session", "TensorInfo", "UnavailableError"]
