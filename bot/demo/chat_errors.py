"""Errors of the Mattermost server: `{id, message, detailed_error, request_id, status_code}`.

Ids and texts are those of mattermost-server 6.7.2 (`i18n/en.json`, `api4/`, `app/`). detailed_error is empty, as on a
server that is not in developer mode, but for pages that are none.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class ChatError(Exception):
    """A request that the server refuses."""

    def __init__(self, code: int, identity: str, message: str, details: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.id = identity
        self.details = details

    def body(self, request_id: str) -> Json:
        """The body of the answer."""
        return {
            "id": self.id,
            "message": str(self),
            "detailed_error": self.details,
            "request_id": request_id,
            "status_code": self.code,
        }


def session_expired() -> ChatError:
    """401: no token, or one that is not valid."""
    return ChatError(401, "api.context.session_expired.app_error", "Invalid or expired session, please login again.")


def token_in_query() -> ChatError:
    """401: tokens in the address are for OAuth."""
    text = "Session is not OAuth but token was provided in the query string."
    return ChatError(401, "api.context.token_provided.app_error", text)


def no_permission() -> ChatError:
    """403."""
    return ChatError(403, "api.context.permissions.app_error", "You do not have the appropriate permissions.")


def bad_body(name: str) -> ChatError:
    """400: the body is no such thing, or lacks a field."""
    return ChatError(400, "api.context.invalid_body_param.app_error", f"Invalid or missing {name} in request body.")


def bad_url(name: str) -> ChatError:
    """400: an id in the path is none."""
    message = f"Invalid or missing {name} parameter in request URL."
    return ChatError(400, "api.context.invalid_url_param.app_error", message)


def no_such_page(path: str) -> ChatError:
    """404: no such route."""
    details = (
        f"There doesn't appear to be an api call for the url='{path}'.  "
        "Typo? are you missing a team_id or user_id as part of the url?"
    )
    return ChatError(404, "api.context.404.app_error", "Sorry, we could not find the page.", details)


def no_post() -> ChatError:
    """404."""
    return ChatError(404, "app.post.get.app_error", "Unable to get the post.")


def no_channel() -> ChatError:
    """404 by id."""
    return ChatError(404, "app.channel.get.existing.app_error", "Unable to find the existing channel.")


def no_channel_named() -> ChatError:
    """404 by name, for what is not there and for what one may not see."""
    return ChatError(404, "app.channel.get_by_name.missing.app_error", "Channel does not exist.")


def no_user() -> ChatError:
    """404 by id."""
    return ChatError(404, "app.user.missing_account.const", "Unable to find the user.")


def no_team() -> ChatError:
    """404."""
    return ChatError(404, "app.team.get_by_name.missing.app_error", "Unable to find the existing team.")


def no_team_member() -> ChatError:
    """404."""
    text = "No team member found for that user ID and team ID."
    return ChatError(404, "app.team.get_member.missing.app_error", text)


def no_channel_member() -> ChatError:
    """404."""
    text = "No channel member found for that user ID and channel ID."
    return ChatError(404, "app.channel.get_member.missing.app_error", text)


def action_failed() -> ChatError:
    """400: the integration behind a button did not answer 200, or not with JSON."""
    return ChatError(400, "api.post.do_action.action_integration.app_error", "Action integration error.")
