"""The rig: real servers on this machine, and players for the parts that people and kubelets have.

* ``recipes``, ``build`` and ``cache``: the servers' binaries, made from their published Go modules once.
* ``process``, ``ports``, ``folder``: one server process, its place on the loopback, its files.
* ``cluster``, ``argo``, ``nodes``, ``chat``: each server's flags, and how to tell that it is ready.
* ``launcher.Rig`` starts the chosen servers together, and leaves nothing running.
* ``kube_client`` and ``mattermost_client``: the plain HTTP clients that the rig itself uses.
* ``pod_player`` plays kubelet and executor: it walks the pods of workflows through a script (``pod_script``);
  ``pod_part`` is one pod in its hands, ``pod_status`` what is written about it.
* ``person`` plays the people in the chat: they type, click, fill in dialogs and read.
* ``selftest`` proves it all; ``test_rig`` does so for pytest, and more closely.

Nothing here imports the bot. A server listens on 127.0.0.1 only, and dies with the process that started it.
"""
