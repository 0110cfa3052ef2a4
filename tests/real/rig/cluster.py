"""The Kubernetes API: etcd, kube-apiserver, and kube-scheduler when it is wanted.

There is no kube-controller-manager and no kubelet. So nobody collects owned objects, nobody makes service accounts,
and pods stay as they were created until a player or kwok moves them.
"""

import asyncio
import csv
import json
import secrets
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import aiohttp

from .build import binaries
from .kube_client import KubeClient, Manifest
from .ports import free_ports
from .process import Service

ADMIN = "rig:admin"
_PROBE = aiohttp.ClientTimeout(total=2)


def service_account(namespace: str, name: str) -> str:
    """Return the user name that RBAC knows a service account by."""
    return f"system:serviceaccount:{namespace}:{name}"


@dataclass(frozen=True)
class Kube:
    """The API server's address, and tokens of the users that it knows."""

    url: str
    ca_file: Path
    tokens: Mapping[str, str]
    """User name -> bearer token."""
    session: aiohttp.ClientSession

    @property
    def admin_token(self) -> str:
        """Return the token of a member of system:masters."""
        return self.tokens[ADMIN]

    def token(self, namespace: str, name: str) -> str:
        """Return the token of a service account; which ones have a token is said when the rig starts."""
        return self.tokens[service_account(namespace, name)]

    def client(self, token: str | None = None) -> KubeClient:
        """Return a client: the admin's, or that of the token's user."""
        return KubeClient(self.session, self.url, token or self.admin_token, self._trust)

    @cached_property
    def admin(self) -> KubeClient:
        """The admin's client."""
        return self.client()

    def kubeconfig(self, path: Path, token: str | None = None, namespace: str = "default") -> Path:
        """Write a kubeconfig file for the admin, or for the token's user, and return its path."""
        document: Manifest = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "rig",
            "clusters": [{"name": "rig", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}],
            "users": [{"name": "rig", "user": {"token": token or self.admin_token}}],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "rig", "namespace": namespace}}],
        }
        path.write_text(json.dumps(document))  # JSON is YAML.
        path.chmod(0o600)
        return path

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca_file))


async def answers(session: aiohttp.ClientSession, url: str, headers: Mapping[str, str] | None = None) -> bool:
    """Tell whether a URL answers with 200; certificates are not looked at, for they may not be there yet."""
    try:
        async with session.get(url, headers=headers, ssl=False, timeout=_PROBE) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


class Cluster:
    """The services of the Kubernetes API, ready to be started."""

    def __init__(self, session: aiohttp.ClientSession, folder: Path, service_accounts: Iterable[str]) -> None:
        self._session = session
        self._folder = folder
        self._etcd_port, self._peer_port, self._port, self._scheduler_port = free_ports(4)
        users = (ADMIN, *service_accounts)
        self.kube = Kube(
            url=f"https://127.0.0.1:{self._port}",
            ca_file=folder / "apiserver-certificates" / "apiserver.crt",
            tokens={user: secrets.token_hex(16) for user in users},
            session=session,
        )

    def etcd(self) -> Service:
        """Return the store: its data may be lost with the machine, so it need not wait for the disk."""
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._peer_port))
        command: list[str | Path] = [
            binaries("etcd") / "bin" / "etcd",
            *("--data-dir", self._folder / "etcd-data"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
            *("--unsafe-no-fsync", "--log-level", "warn"),
        ]
        return Service("etcd", command, self._folder, lambda: answers(self._session, f"{client}/health"))

    async def apiserver(self) -> Service:
        """Return the API server, with its keys and its list of tokens written."""
        key = self._folder / "service-accounts.key"
        await _make_key(key)
        tokens = self._folder / "tokens.csv"
        self._write_tokens(tokens)
        command: list[str | Path] = [
            binaries("kubernetes") / "bin" / "kube-apiserver",
            *("--etcd-servers", f"http://127.0.0.1:{self._etcd_port}"),
            *("--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", str(self._port)),
            *("--cert-dir", self.kube.ca_file.parent),
            *("--service-account-key-file", key, "--service-account-signing-key-file", key),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--token-auth-file", tokens, "--authorization-mode", "RBAC"),
            *("--service-cluster-ip-range", "10.0.0.0/24"),
            # Both plugins count on kube-controller-manager: to make service accounts, to untaint ready nodes.
            *("--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"),
            # kwok's nodes have an address but no name that could be looked up.
            *("--kubelet-preferred-address-types", "InternalIP"),
        ]
        headers = {"Authorization": f"Bearer {self.kube.admin_token}"}
        # Its farewell waits for open watches, longer than any test would.
        return Service(
            "kube-apiserver",
            command,
            self._folder,
            lambda: answers(self._session, f"{self.kube.url}/readyz", headers),
            grace=3.0,
        )

    def scheduler(self) -> Service:
        """Return the real scheduler, which binds pods to kwok's nodes by label, taint and GPU count."""
        kubeconfig = self.kube.kubeconfig(self._folder / "scheduler.kubeconfig")
        command: list[str | Path] = [
            binaries("kubernetes") / "bin" / "kube-scheduler",
            *("--kubeconfig", kubeconfig, "--leader-elect=false"),
            *("--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig),
            *("--bind-address", "127.0.0.1", "--secure-port", str(self._scheduler_port)),
            *("--cert-dir", self._folder / "scheduler-certificates"),
        ]
        url = f"https://127.0.0.1:{self._scheduler_port}/readyz"
        return Service("kube-scheduler", command, self._folder, lambda: answers(self._session, url), grace=3.0)

    def _write_tokens(self, path: Path) -> None:
        with path.open("w", newline="") as handle:
            writer = csv.writer(handle)
            for number, (user, token) in enumerate(self.kube.tokens.items()):
                writer.writerow([token, user, f"rig-{number}", ",".join(_groups(user))])
        path.chmod(0o600)


def _groups(user: str) -> list[str]:
    if user == ADMIN:
        return ["system:masters"]
    namespace = user.split(":")[2]
    return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]


async def _make_key(path: Path) -> None:
    # One private key serves for signing and, its public half, for checking.
    openssl = await asyncio.create_subprocess_exec(
        *("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)),
        stderr=asyncio.subprocess.DEVNULL,
    )
    if await openssl.wait() != 0:
        raise RuntimeError("openssl could not make the key of the service accounts")


async def install(kube: KubeClient, definitions: Iterable[Manifest]) -> None:
    """Create custom resource definitions, and wait until the API server serves them."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    async def one(definition: Manifest) -> None:
        await kube.ensure(path, definition)
        # the full definitions of Argo 4.0 take half a minute where three such servers share two cores
        await kube.until(f"{path}/{definition['metadata']['name']}", _established, limit=120)

    async with asyncio.TaskGroup() as group:
        for definition in definitions:
            group.create_task(one(definition))


def _established(definition: Manifest) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
