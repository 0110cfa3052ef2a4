"""`gputest-bot doctor`: looks at everything that a run needs, changes nothing, and says what to do.

It uses the bot's own secrets and the bot's own rights, so it is best run where the bot runs:
`kubectl -n gputest exec deploy/gputest-bot -- gputest-bot doctor --config /etc/gputest/config.yaml`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bot.clients.errors import Forbidden, Invalid, NotFound, WireError
from bot.clients.kube import Kube
from bot.clients.mattermost import Mattermost
from bot.clients.mattermost_commands import CommandRegister
from bot.clients.mattermost_rooms import Rooms
from bot.clients.mattermost_socket import Socket
from bot.clients.mattermost_survey import Myself, Survey
from bot.config import Config, Secrets
from bot.core.asking import COMMANDS
from bot.core.nightly import view
from bot.core.packed import read_cron
from bot.core.registration import plan, wanted
from bot.core.render import doctor as say
from bot.core.render.doctor import Finding
from bot.core.rights import Access, OwnObjects, rights
from bot.core.schedule import next_times
from bot.core.workflow import Parameters, Wire
from bot.metrics import Metrics
from bot.tasks import Tasks

LINE_SECONDS = 12.0
"""Until the websocket is given up; longer than its own deadline for a hello."""

ARGO = "/apis/argoproj.io/v1alpha1"


async def examine(config: Config, secrets: Secrets, *, kube_url: str = "", kube_token: str = "") -> list[Finding]:
    """Look at everything; the chat first, then the cluster."""
    metrics = Metrics()
    findings = [finding async for finding in _Chat(config, secrets, metrics).examine()]
    cluster = _Cluster(config, metrics, kube_url, kube_token)
    return findings + [finding async for finding in cluster.examine()]


class _Chat:
    def __init__(self, config: Config, secrets: Secrets, metrics: Metrics) -> None:
        self._config = config
        self._secrets = secrets
        self._metrics = metrics
        self._place = config.mattermost
        self._chat = Mattermost(self._place.url, secrets.mattermost_token, metrics, verify=self._place.ca_file or True)
        self._survey = Survey(self._chat)

    async def examine(self) -> AsyncIterator[Finding]:
        """One thing after the other; without a token that is taken there is nothing to see."""
        if not self._secrets.mattermost_token:
            yield say.no_token()
            return
        try:
            me = await self._survey.myself()
            await self._chat.sign_in()
        except Forbidden as error:
            yield say.token_refused(error.reason)
            return
        except WireError as error:
            yield say.chat_unreachable(self._place.url, error.reason)
            return
        yield say.account(me.name, is_bot=me.is_bot)
        try:
            async for finding in self._as(me):
                yield finding
        except WireError as error:
            yield say.chat_unreachable(self._place.url, error.reason)
        finally:
            self._chat.close()

    async def _as(self, me: Myself) -> AsyncIterator[Finding]:
        yield await self._line()
        try:
            team = await self._survey.team(self._place.team)
        except (NotFound, Forbidden):
            yield say.team_missing(self._place.team, me.name)
            return
        try:
            roles = (*me.roles, *await self._survey.team_roles(team))
        except (NotFound, Forbidden):
            yield say.not_in_team(self._place.team, me.name)
            return
        yield say.team(self._place.team)
        place = self._place
        for name in dict.fromkeys(
            [place.channel, place.nightly_channel, place.push_channel, place.alerts_channel, *place.also]
        ):
            if name:
                yield await self._channel(name, me, roles)
        settings = await self._survey.settings()
        yield say.edit_limit(settings.get("PostEditTimeLimit", ""))
        yield say.post_size(settings.get("MaxPostSize", ""))
        for finding in [*await self._people(), *await self._slash_commands(team, me)]:
            yield finding
        for host in dict.fromkeys(
            urlsplit(url).netloc for url in (place.commands_url, self._config.callback_url) if url
        ):
            yield say.internal_address(host)

    async def _line(self) -> Finding:
        """Open the websocket once, and wait for its hello."""
        heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        ear = _Ear(heard)
        tasks = Tasks(lambda _name, error: ear.closed(repr(error), refused=False))
        token, check = self._secrets.mattermost_token, self._chat.sign_in
        socket = Socket(self._place.url, token, ear, check, self._metrics, ca_file=self._place.ca_file)
        tasks.spawn(socket.run(), name="websocket", eternal=True)
        try:
            async with asyncio.timeout(LINE_SECONDS):
                reason = await heard
        except TimeoutError:
            reason = "nothing comes in"
        finally:
            await tasks.close()
        only_way = not self._place.commands_url and not self._secrets.command_tokens
        return say.line_broken(reason, only_way=only_way) if reason else say.line_stands()

    async def _channel(self, name: str, me: Myself, roles: tuple[str, ...]) -> Finding:
        try:
            channel, archived = await self._survey.channel(self._place.team, name)
        except (NotFound, Forbidden):
            return say.channel_missing(name, me.name)
        if archived:
            return say.channel_archived(name)
        try:
            all_roles = (*roles, *await self._survey.channel_roles(channel))
        except (NotFound, Forbidden):
            return say.not_in_channel(name, me.name)
        allowed = await self._survey.permissions(all_roles)
        if allowed is None:
            return say.rights_unknown(name)
        return say.channel(name) if "create_post" in allowed else say.may_not_post(name)

    async def _people(self) -> list[Finding]:
        runs = self._config.runs
        named = {name for role in runs.roles for name in role.users if name != "*"} | set(runs.owners)
        known = await self._chat.user_ids(sorted(named))
        return [say.unknown_user(name) for name in sorted(named - set(known))]

    async def _slash_commands(self, team: str, me: Myself) -> list[Finding]:
        url, given = self._place.commands_url, len(self._secrets.command_tokens)
        if not url:
            return [say.slash_not_wanted(given)]
        register, wishes = CommandRegister(self._chat, team), wanted(COMMANDS, url)
        try:
            seen = plan(wishes, await register.listed(), me.id)
        except Forbidden:
            return say.slash_unseen(wishes, await register.offered(), given)
        except Invalid as error:
            return [say.slash_disabled(error.reason)]
        rooms, owners = Rooms(self._chat), dict[str, str]()
        for other in seen.taken:
            try:
                owners[other.creator_id] = (await rooms.account(other.creator_id)).name
            except WireError:
                continue  # whoever it was is gone
        return say.slash_seen(wishes, seen, owners)


class _Ear:
    """Hears whether the line stands; "" for yes, else why not."""

    def __init__(self, heard: asyncio.Future[str]) -> None:
        self._heard = heard

    def opened(self, *, gap: bool) -> None:  # noqa: ARG002  # a check-up misses nothing
        self._tell("")

    def happened(self, event: str, data: Any) -> None:
        """What happens in the chat is not our business here."""

    def closed(self, reason: str, *, refused: bool) -> None:  # noqa: ARG002  # the token was looked at before
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        if not self._heard.done():
            self._heard.set_result(reason)


class _Cluster:
    def __init__(self, config: Config, metrics: Metrics, url: str, token: str) -> None:
        self._config = config
        self._metrics = metrics
        self._url, self._token = url, token

    async def examine(self) -> AsyncIterator[Finding]:
        """Reach it, then what the bot may do in it, then what is in it."""
        try:
            kube = await Kube.connect(
                self._metrics, kubeconfig=self._config.kubernetes.kubeconfig, url=self._url, token=self._token
            )
        except Exception as error:  # noqa: BLE001  # whatever it is, there is no way to the cluster
            yield say.cluster_unreachable(f"there is no way to it: {error}")
            return
        try:
            try:
                version = json.loads(await kube.read("/version"))["gitVersion"]
            except WireError as error:
                yield say.cluster_unreachable(error.reason)
                return
            yield say.cluster(version)
            bot = self._config.bot
            own = OwnObjects(bot.namespace, bot.lease, bot.config_map, bot.history, bot.costs)
            for right in rights(self._config.runs, own):
                yield await self._access(kube, right)
            for look in (self._template, self._cron, self._lease):
                yield await look(kube)
        finally:
            await kube.close()

    async def _access(self, kube: Kube, right: Access) -> Finding:
        denied = []
        for verb in right.verbs:
            try:
                allowed = await self._may(kube, right, verb)
            except WireError as error:
                return say.access_unknown(right, error.reason)
            denied += [] if allowed else [verb]
        return say.access(right, denied)

    async def _may(self, kube: Kube, right: Access, verb: str) -> bool:
        """https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access"""
        resource, _, subresource = right.resource.partition("/")
        attributes = {"namespace": right.namespace, "verb": verb, "group": right.group, "resource": resource}
        attributes |= {"subresource": subresource, "name": right.name}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = json.loads(await kube.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body))
        return bool(answer["status"]["allowed"])

    async def _template(self, kube: Kube) -> Finding:
        runs = self._config.runs
        path = f"{ARGO}/namespaces/{runs.namespace}/workflowtemplates/{runs.template}"
        try:
            found = _TEMPLATE.decode(await kube.read(path))
        except NotFound:
            return say.template_missing(runs.template, runs.namespace)
        except (WireError, msgspec.MsgspecError) as error:
            return say.unread(f"WorkflowTemplate {runs.template}", str(error))
        names = runs.parameters
        sent = [names.models, names.scope, names.epochs, names.ref, names.pool, names.cap, names.notify]
        taken = {parameter.name: parameter for parameter in found.spec.arguments.parameters or []}
        unset = [n for n, parameter in taken.items() if n not in sent and parameter.value is None]
        return say.template(runs.template, [name for name in sent if name not in taken], unset)

    async def _cron(self, kube: Kube) -> Finding:
        runs, now = self._config.runs, time.time()
        path = f"{ARGO}/namespaces/{runs.namespace}/cronworkflows/{runs.cron}"
        try:
            found = read_cron(await kube.read(path))
        except NotFound:
            return say.cron_missing(runs.cron, runs.namespace)
        except (WireError, msgspec.MsgspecError) as error:
            return say.unread(f"CronWorkflow {runs.cron}", str(error))
        coming = next_times(found.schedules, found.spec.timezone, now)
        return say.cron(view(found, now), coming[0] if coming else None)

    async def _lease(self, kube: Kube) -> Finding:
        bot = self._config.bot
        path = f"/apis/coordination.k8s.io/v1/namespaces/{bot.namespace}/leases/{bot.lease}"
        try:
            spec = _LEASE.decode(await kube.read(path)).spec
        except NotFound:
            return say.lease("", None)
        except (WireError, msgspec.MsgspecError) as error:
            return say.unread("Lease", str(error))
        return say.lease(spec.holder_identity or "", _since(spec.renew_time))


def _since(text: str | None) -> float | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(text or "")).total_seconds()
    except (ValueError, TypeError):
        return None


class _TemplateSpec(Wire, frozen=True):
    arguments: Parameters = Parameters()


class _Template(Wire, frozen=True):
    spec: _TemplateSpec = _TemplateSpec()


class _LeaseSpec(Wire, frozen=True):
    holder_identity: str | None = None
    renew_time: str | None = None


class _Lease(Wire, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


_TEMPLATE = msgspec.json.Decoder(_Template)
_LEASE = msgspec.json.Decoder(_Lease)
