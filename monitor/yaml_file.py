"""A YAML text in, its values out, by the rules of YAML 1.2 for what is true and false."""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads `on`, `off`, `yes` and `no` as booleans: the key `on` of a fallback, and Norway's NO."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def load_yaml(text: str) -> Any:
    """Return what a text says; raises yaml.YAMLError where it is no YAML."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a SafeLoader that reads fewer words as booleans
