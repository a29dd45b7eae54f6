"""The command line in this package: partita compile ..., or python -m partita compile ..."""

import sys

from . import commands


def main():
    """Runs one command and returns its exit code."""
    return commands.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
