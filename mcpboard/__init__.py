"""mcpboard puts the Model Context Protocol in front of phones."""

# Here, and not in the package metadata, which a board that ships bytecode only need not have.
# setup.cfg, `make dist` and the Debian recipe read this line; the recipes that cannot are compared with it by a test.
__version__ = "0.1.0"

__all__ = ["__version__"]
