"""One file a hop: messages in, messages and effects out, through ports only."""
