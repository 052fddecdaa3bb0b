"""The domain of conversation-monitor: plain Python, no I/O outside `adapters`, `cli` and `web`."""
