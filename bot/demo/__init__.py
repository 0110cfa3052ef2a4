"""An embedded world for the bot: a small cluster and a small chat in one process, behind real HTTP.

`make demo` runs the bot against it, and the ordinary test-suite uses it in place of the Kubernetes API, Argo and
Mattermost. It is no mock: state is plain data, HTTP is a face on it, and the same contract cases run against it and
against the real servers. Where they differ, this is wrong.

    clock, chance            simulated time (a speed, or stepped by hand) and seeded dice: a seed repeats a night
    world                    objects, revisions, history of changes    (etcd and the API server's storage)
    kube_*, access, deleting what HTTP clients of the cluster see      (kube-apiserver, RBAC, garbage collector)
    argo*                    Workflows and CronWorkflows               (Argo workflow-controller 3.7.3)
    scheduler, pools         pods to nodes, nodes as pods need them    (kube-scheduler, cluster-autoscaler)
    pods, runs               what happens inside pods                  (kubelet, argoexec, the GPU tests)
    chat_*, mattermost_api   the chat                                  (Mattermost 6.7.2)
    faults                   switches that break either server
    cluster, chat            phrases for tests: finish a run, lose a node, say, click
    embedded                 all of it, started and stopped
    page, panel, markdown    the chat page in chat_page/, its side panel, its Markdown (no part of a real chat's server)

The parts know each other as the real ones do. Controllers hear of changes and write objects back, on the clock and
without asyncio, so that a stepped night is quick and exact; only the two HTTP faces are coroutines. Nothing of the
bot is imported here: an encoding that both sides share would hide a mistake that both sides make.

What the embedded world leaves out (a client that relies on it needs the real thing):

  * Kubernetes: other kinds than those in `kinds`, events.k8s.io and the old watch paths among them; schemas beyond
    `go_types`, so that anything goes into most of a spec, nothing is filled in there, and kubectl explain finds
    nothing; admission other than namespaces, names, labels and sizes; managedFields and server-side apply, which is
    refused with 415; protobuf but for what kubectl creates by itself (`kube_protobuf`); rules reviews (`auth can-i
    --list`); fields that stand twice in a body; what the watch cache does in detail (bookmarks come every 60 real
    seconds and two before the end, and carry the latest revision of everything); impersonation, TLS and client
    certificates (kubectl's token is in the address, which get --raw forgets); exec, attach, port-forward; the
    eviction API; logs of the executor's own containers and of earlier ones; quotas; expiry of list snapshots by time
    (only the bounded history and `Store.forget` make a 410). Messages about broken JSON and YAML are Python's.
  * Scheduling: CPU, memory, affinity; preemption for anything but a GPU; volumes. A lost node's pods fail after a
    minute and are deleted half a minute later.
  * Argo: artifacts, withItems and other expansion, expressions (`{{=…}}`), lifecycle hooks but the workflow's onExit,
    semaphores and template-level locks, parallelism, back-off between retries, memoization, templateRef, resource,
    HTTP, plugin, data and containerSet templates, daemons, offloaded and compressed nodes, archive, the Argo server,
    durations of resources, the zero values that Go writes into specs, `when` and stopStrategy of CronWorkflows, what
    of the validator is not in `argo_validation`. A workflow that asks for expansion, hooks, expressions, semaphores,
    templateRef, daemons, memoization or a template of a kind that is not played ends as Error and says so; what is
    left out otherwise is passed over. What 4.0 does otherwise is not played: it calls a pod that failed without an end
    of its containers Failed, not Succeeded, and a retried workflow that is back in the queue Pending, so that it can be
    terminated there; and its controller dies of a spec that Go cannot read.
  * Mattermost: what collapsed threads say of who follows and takes part; search; preferences; statuses (`@here` is
    everybody), what has been read and what is unread; notifications; roles other than administrator and everybody
    else, who may make channels, look into what is open in their team, and in a channel do what members may; signing
    up, signing out and the end of sessions; built-in slash commands, whose triggers are taken all the same; editing
    channels and teams, their members' roles, lists of bots, tokens and webhooks; plugins; what is known of a bot beside
    its names; pictures of people, previews of files and links, permalinks, parts of a file by Range; custom emoji;
    post priority; guests; clusters; AllowedUntrustedInternalConnections; autocomplete_data; ETags; bodies nested more
    than a hundred deep; the payload limits of newer servers; rate limits by a header of the request. A route that is
    not there is answered with 404 as one that no server has.
"""

from bot.demo.embedded import EmbeddedWorld

__all__ = ["EmbeddedWorld"]
