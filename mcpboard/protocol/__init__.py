"""The core: an MCP endpoint as a calculation. Nothing here waits, reads a clock or draws a number."""
