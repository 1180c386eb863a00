"""The control loop: knows panes and shells, and nothing of MCP."""
