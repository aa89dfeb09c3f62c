"""`python -m mcpboard` is the `mcpboard` command."""

import sys

from mcpboard.cli import main

if __name__ == "__main__":
    sys.exit(main())
