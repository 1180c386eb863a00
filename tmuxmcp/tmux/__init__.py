"""Everything that knows tmux, and nothing that knows MCP."""
