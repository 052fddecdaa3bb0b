"""Windows in, findings out."""
