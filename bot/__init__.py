"""A ChatOps bot for GPU test runs: Argo Workflows on one side, Mattermost on the other.

The world tells us something (`sources`), we decide (`core`), we do something (`sinks`):

    watches, slash commands, clock, lease -> event -> core.react -> effect -> posts, patches, answers

`core` is pure: it does no I/O and reads no clock. `clients` are the wires. `runtime` is the loop
between them, `app` puts everything together, `demo` is a whole world to try the bot in.
"""

__version__ = "0.1.0"
