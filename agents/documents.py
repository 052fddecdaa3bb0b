"""Wires where reference documents come from: settings and policy in, a judge that is given its documents out."""

from pathlib import Path
from typing import assert_never

from monitor.adapters.bm25_passages import BM25Passages
from monitor.adapters.folder_references import FolderReferences
from monitor.adapters.http_references import HttpReferences
from monitor.judging.consulting import Consulting
from monitor.judging.judge import Judge
from monitor.judging.references import Chain, DocumentSource, EventReferences
from monitor.policy import ConfigError, Policy
from monitor.settings import Settings, secret


def build_documents(settings: Settings, policy: Policy) -> DocumentSource:
    """Wire the sources of reference documents in the order that the configuration gives them."""
    wanted = policy.monitor.references
    sources: list[DocumentSource] = []
    for name in wanted.order:
        match name:
            case "event":
                sources.append(in_event(policy))
            case "folder":
                folder = settings.documents or Path("documents")
                sources.append(FolderReferences(folder, max_chars=wanted.max_chars))
            case "http" if wanted.http is not None:
                variable = wanted.http.token_variable
                token = secret(variable) if variable else None
                if variable and not token:
                    raise ConfigError(
                        f"{variable}: missing; references.http.token_variable of monitor.yaml names it"
                    )
                sources.append(HttpReferences(wanted.http, max_chars=wanted.max_chars, token=token))
            case "http":
                continue  # no endpoint is configured
            case _:
                assert_never(name)
    return Chain(sources)


def in_event(policy: Policy) -> EventReferences:
    """Return the only source that a judge behind `consulting` needs: what is in its request."""
    return EventReferences(max_chars=policy.monitor.references.max_chars)


def consulting(settings: Settings, policy: Policy, judge: Judge, *, passages: bool) -> Judge:
    """Give a judge its documents as they were when the turn was answered; a model sees passages of large ones."""
    wanted = policy.monitor.references
    return Consulting(
        judge,
        build_documents(settings, policy),
        grounded=wanted.grounded,
        passages=BM25Passages(keep_chars=wanted.passage_chars) if passages else None,
        asked=f"passages:{wanted.passage_chars}" if passages else "",
    )
