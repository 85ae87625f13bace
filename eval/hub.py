"""The Hugging Face hub: the pinned commit of each repository, and a one-sentence error where it
refuses.

The paper's data and models are pinned, so that a suite that is resumed next month scores the same
samples with the same weights. Records state the commit. Files go to the hub's own cache, which
processes and commands share: what is there is not downloaded again, and an interrupted download
resumes.
"""

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    get_token,
    hf_hub_url,
    snapshot_download,
)
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import httpx, validate_repo_id

from core.errors import InputError, in_one_line

# Commits that public code pins, except LongBench's, whose files the hub lists at this commit, and
# HellaSwag's, ARC's and TruthfulQA's, which were heads of `main` in September 2026.
REVISIONS = {
    "meta-llama/Llama-2-7b-hf": "01c7f73d771dfac7d292323805ebc428287df4f9",
    "meta-llama/Llama-2-13b-hf": "5c31dfb671ce7cfe2d7bb7c04375e44c55e815b1",
    "emozilla/pg19": "c021754c8e01c5b1cc83a1f549c1f97fbbb756b8",
    "THUDM/LongBench": "7956e94fb272285d5ed77fe3ba9843ed250ce6f4",
    "truthfulqa/truthful_qa": "741b8276f2d1982aa3d5b832d3ee81ed3b896490",
    "Rowan/hellaswag": "218ec52e09a7e7462a5400043bb9a69a41d06b76",
    "cais/mmlu": "c30699e8356da336a370243923dbaf21066bb9fe",
    "allenai/ai2_arc": "210d026faf9955653af8916fad021475a3f00453",
}
PATIENCE = 10  # seconds to wait for the hub's first answer
_FAILURES = OSError, ValueError, RuntimeError, httpx.HTTPError  # what its client raises
# the file to ask for; a gated model's config.json is gated
_PROBE = {"model": "config.json", "dataset": "README.md"}


@functools.cache
def reach(name: str, kind: str = "model") -> None:
    """Ask the hub, once, whether a repository can be read. If the hub does not serve, use only the
    cache from now on.

    Without this, the libraries ask six times for every file, with no time limit. A name that cannot
    be a repository's is ignored, and a repository that does not exist is reported by whoever opens
    it.

    Args:
        kind: "model" or "dataset".

    Raises:
        InputError: the repository is gated, the token is refused, or the pinned commit is missing.
    """
    if constants.is_offline_mode():
        return
    try:
        validate_repo_id(name)
        url = hf_hub_url(name, _PROBE[kind], repo_type=kind, revision=REVISIONS.get(name))
        within(PATIENCE, functools.partial(get_hf_file_metadata, url, timeout=PATIENCE))
    except HFValidationError:
        return
    except HfHubHTTPError as error:
        if sentence := _refusal(error, name, kind):
            raise InputError(sentence) from error
        status = error.response.status_code
        constants.HF_HUB_OFFLINE = status == 429 or status >= 500
    except (TimeoutError, httpx.RequestError):
        constants.HF_HUB_OFFLINE = True


def reason(error: Exception) -> str:
    """Why the hub gave nothing, for the sentence of an error."""
    if constants.is_offline_mode():
        return (
            f"{constants.ENDPOINT} is out of reach or too busy, and its files are not all in "
            f"the cache"
        )
    return in_one_line(error)


def download(name: str, pattern: str, otherwise: str, dry_run: bool = False) -> list[Any]:
    """A dataset's files that match a pattern, at the pinned commit, sorted: their paths, downloaded
    where needed.

    Args:
        otherwise: what to do if the hub cannot give the files; it ends the sentence of the error.
        dry_run: download nothing, and return their names.

    Raises:
        InputError: the dataset cannot be read, or has no such file.
    """
    found = snapshot(name, "dataset", otherwise, allow_patterns=pattern, dry_run=dry_run)
    names = [file.filename for file in found] if dry_run else Path(found).glob(pattern)
    if not (matching := sorted(names)):
        raise InputError(f"{name} on the hub has no file {pattern}; {otherwise}.")
    return matching


def snapshot(name: str, kind: str, otherwise: str, **how) -> Any:
    """What ``snapshot_download`` returns for a repository at its pinned commit; InputError as
    :func:`download`."""
    reach(name, kind)
    try:
        return snapshot_download(
            name, repo_type=kind, revision=REVISIONS.get(name), etag_timeout=PATIENCE, **how
        )
    except _FAILURES as error:
        if isinstance(error, HfHubHTTPError) and (sentence := _refusal(error, name, kind)):
            raise InputError(sentence) from error
        raise InputError(
            f"cannot read {name} from the hub ({reason(error)}); {otherwise}."
        ) from error


def _refusal(error: HfHubHTTPError, name: str, kind: str) -> str | None:
    """The error's sentence for an answer that asking again would not change; None for any other
    error."""
    page = f"{constants.ENDPOINT}/{'datasets/' if kind == 'dataset' else ''}{name}"
    if isinstance(error, RevisionNotFoundError):
        return f"{page} has no commit {REVISIONS.get(name)}; pin another in eval/hub.py."
    refused = type(error) is HfHubHTTPError and error.response.status_code == 401
    if refused or isinstance(error, GatedRepoError):
        token = "your token has no access to" if get_token() else "there is no token for"
        return (
            f"{token} {page}; ask for access there if it is gated, and log in by `hf auth "
            f"login`, or set HF_TOKEN."
        )
    return None


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """What `call` returns.

    httpx limits each wait for a byte, and a server may send one byte of its headers after another
    without end. So a thread calls, which is left behind when the time is over.

    Raises:
        TimeoutError: it takes longer.
    """
    outcome: Future = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(seconds)
