"""mcpboard puts the Model Context Protocol in front of phones."""

# Written here as well as in setup.cfg because a board may ship bytecode alone, without
# package metadata to ask; tests/test_documents.py holds the two together.
__version__ = "0.1.0"

__all__ = ["__version__"]
