"""Events in, decisions with rule, rate and weight out."""
