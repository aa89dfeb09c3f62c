"""Start the bridge inside a Claude Desktop bundle. Usage: main.py URL TOKEN_FILE

Claude Desktop takes whatever Python it finds, so this file is read by old ones, too.
"""

import os
import sys

LONGEST_LINE = 10 * 1024 * 1024  # bytes; the client's SDK ends the connection at a longer one


def words(url, token_file=""):
    """The command line of mcpboard; a setting that was left out comes empty or as its own name in braces."""
    command = ["bridge", url, "--longest-line", str(LONGEST_LINE)]
    if token_file and not token_file.startswith("${"):
        command += ["--token-file", token_file]
    return command


if __name__ == "__main__":
    if sys.version_info < (3, 10):
        found = "%d.%d (%s)" % (sys.version_info[0], sys.version_info[1], sys.executable)
        sys.exit("mcpboard needs Python 3.10 or later and found %s: install one, then restart the client" % found)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
    from mcpboard.cli import main

    sys.exit(main(words(*sys.argv[1:])))
