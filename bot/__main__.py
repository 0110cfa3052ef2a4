"""The command line: run | demo | check-config | doctor | release-finalizers."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from bot import __version__
from bot.config import Config, ConfigError, Secrets, load, secrets


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and do it; the exit status is 0 only where it was done."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.do(arguments))
    except ConfigError as error:
        print(f"gputest-bot: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gputest-bot", description="A ChatOps bot for GPU test runs.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run the bot")
    run.add_argument("--config", type=Path, help="config.yaml; without it everything has its default")
    run.set_defaults(do=_run)
    demo = commands.add_parser("demo", help="run the bot on an embedded cluster and chat, with a chat page to try it")
    demo.add_argument("--speed", type=float, default=40.0, help="simulated seconds in one (40)")
    demo.add_argument("--seed", type=int, default=1, help="of the dice: durations, failures, names (1)")
    demo.add_argument(
        "--port", type=int, default=0, help="of the chat page; where it is taken, the next free one (8065)"
    )
    demo.set_defaults(do=_demo)
    check = commands.add_parser("check-config", help="read config.yaml and say what is wrong with it")
    check.add_argument("--config", type=Path, required=True)
    check.set_defaults(do=_check)
    doctor = commands.add_parser("doctor", help="look at what a run needs and say what to do; changes nothing")
    doctor.add_argument("--config", type=Path, help="config.yaml; without it everything has its default")
    doctor.set_defaults(do=_doctor)
    release = commands.add_parser(
        "release-finalizers", help="let every held Workflow go, before the bot is removed for good"
    )
    release.add_argument("--config", type=Path)
    release.set_defaults(do=_release)
    return parser


def _check(arguments: argparse.Namespace) -> int:
    config = load(arguments.config)
    runs = config.runs
    print(f"{arguments.config} is fine: {len(runs.models)} models, {len(runs.pools)} pools, template {runs.template}")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from bot import logs
    from bot.core.render.doctor import healthy, report
    from bot.doctor import examine

    logs.set_up("ERROR")
    findings = asyncio.run(examine(load(arguments.config), secrets()))
    print(report(findings))
    return 0 if healthy(findings) else 1


def _run(arguments: argparse.Namespace) -> int:
    config, kept = load(arguments.config), secrets()
    if not kept.mattermost_token:
        raise ConfigError("no token for Mattermost. Set GPUTEST_MATTERMOST_TOKEN, or GPUTEST_MATTERMOST_TOKEN_FILE.")
    return asyncio.run(_serve(config, kept))


async def _serve(config: Config, kept: Secrets) -> int:
    from bot import logs
    from bot.app import running

    logs.set_up(config.bot.log_level)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with running(config, kept) as bot:
        bot.crashed.add_done_callback(lambda _: stop.set())
        await stop.wait()
        return 1 if bot.crashed.done() else 0


def _demo(arguments: argparse.Namespace) -> int:
    from bot.play import Options, serve

    options = Options(speed=arguments.speed, seed=arguments.seed, port=arguments.port)
    return asyncio.run(serve(options, lambda text: print(text, flush=True)))


def _release(arguments: argparse.Namespace) -> int:
    from bot.app import release_finalizers
    from bot.clients.errors import WireError

    config = load(arguments.config)
    try:
        released, failed = asyncio.run(release_finalizers(config))
    except WireError as error:
        print(f"The cluster can't be asked: {error}. Nothing was released; see kubernetes.kubeconfig.", file=sys.stderr)
        return 1
    print(f"released {released} Workflows" + (f", {failed} could not be released" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
