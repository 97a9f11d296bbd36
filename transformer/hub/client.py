"""The client of huggingface_hub, and what its errors mean."""

from __future__ import annotations

import errno

import httpx2
from huggingface_hub import HfApi, errors

from transformer.hub.settings import Hub, HubError, UnreachableError


def client(hub: Hub) -> HfApi:
    """A client of huggingface_hub."""
    return HfApi(endpoint=hub.endpoint, token=hub.token, library_name="attention-explorer")


def explained(error: BaseException, name: str, hub: Hub, revision: str | None = None) -> HubError:
    """Explains an error of huggingface_hub in one sentence."""
    cause = error.__cause__
    if isinstance(error, errors.LocalEntryNotFoundError) and cause is not None:
        return explained(cause, name, hub, revision)
    if isinstance(error, HubError):
        return error
    if isinstance(error, errors.OfflineModeIsEnabled):
        return UnreachableError("The network is switched off (HF_HUB_OFFLINE).")
    if isinstance(error, errors.HfHubHTTPError):
        return _answer(error, name, hub, revision)
    if isinstance(error, httpx2.TransportError):
        return UnreachableError(f"The Hub at {hub.address} cannot be reached ({type(error).__name__}).")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HubError(f"{name} does not fit on the disk of {hub.cache}.")
    if isinstance(error, OSError) and error.errno is not None:
        return HubError(f"{name} cannot be saved in {hub.cache}: {error.strerror}.")
    if isinstance(error, errors.LocalTokenNotFoundError):
        return HubError("No token for the Hub was found; log in with `hf auth login`.")
    return HubError(f"{name}: the server at {hub.address} is not the Hub; check HF_ENDPOINT.")


def _answer(error: errors.HfHubHTTPError, name: str, hub: Hub, revision: str | None) -> HubError:
    """Explains an error status of the Hub in one sentence."""
    status = error.response.status_code
    if isinstance(error, errors.GatedRepoError):
        return HubError(
            f"{name} is open only to users who accept its terms: accept them at {hub.address}/{name}, "
            "and log in with `hf auth login`."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"{name} has no revision {revision!r:.120} on the Hub.")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return HubError(f"{name} lists a file that the Hub does not have; its upload was not finished.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(
            f"There is no model {name} on the Hub, or it is private: check the spelling, or log in with "
            "`hf auth login`."
        )
    if isinstance(error, errors.DisabledRepoError):
        return HubError(f"{name} is switched off on the Hub.")
    if status in (401, 403):
        return HubError(f"The Hub refuses access to {name} with this token; log in with `hf auth login`.")
    if status == 429 or status >= 500:
        return UnreachableError(f"The Hub at {hub.address} answers with an error ({status}).")
    return HubError(f"The Hub at {hub.address} refuses {name} ({status}).")
