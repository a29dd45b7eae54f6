"""Exceptions of the runtime. The message says what was expected, what was found, and what to do."""


class PartitaError(Exception):
    """Any error that Partita reports."""


class InvalidError(PartitaError, ValueError):
    """A wrong argument, tensor, file or state."""


class MissingError(PartitaError, LookupError):
    """A file or a name that does not exist."""


class NoMemoryError(PartitaError, MemoryError):
    """The host or a device has too little memory."""


class UnavailableError(PartitaError, RuntimeError):
    """A device or a rank failed, or a timeout passed."""


class DataLossError(PartitaError, ValueError):
    """A damaged file."""


class InternalError(PartitaError, RuntimeError):
    """A bug in Partita."""


# By partita_status.
BY_STATUS = {1: InvalidError, 2: MissingError, 3: NoMemoryError, 4: UnavailableError, 5: DataLossError, 6: InternalError}
