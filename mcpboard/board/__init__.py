"""Role 1: MCP in front of the board's loopback APIs."""
