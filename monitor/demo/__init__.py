"""The demo: an invented shop, its policies and its conversations."""
