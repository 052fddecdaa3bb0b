"""The processes on the stream."""
