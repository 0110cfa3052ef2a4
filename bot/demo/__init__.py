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

  * Kubernetes: other kinds than those in `kinds`; schemas, so that anything goes into a spec; admission other than
    namespaces, names, labels and sizes; managedFields, and ownership in server-side apply, which only merges;
    sendInitialEvents; protobuf bodies; what the watch cache does in detail (bookmarks come every 60 real seconds and
    two before the end, and carry the latest revision of everything); impersonation, TLS and client certificates
    (kubectl's token is in the address); exec, attach, port-forward; the eviction API; logs of the executor's own
    containers; quotas; expiry of list snapshots by time (only the bounded history and `Store.forget` make a 410).
  * Scheduling: CPU, memory, affinity; preemption for anything but a GPU; volumes. A lost node's pods fail after a
    minute and are deleted half a minute later.
  * Argo: artifacts, withItems and other expansion, expressions (`{{=…}}`), lifecycle hooks but the workflow's onExit,
    semaphores and template-level locks, parallelism, back-off between retries, memoization, templateRef, resource,
    HTTP, plugin, data and containerSet templates, daemons, offloaded and compressed nodes, archive, the Argo server,
    durations of resources, the zero values that Go writes into specs, `when` and stopStrategy of CronWorkflows, most of
    the validator. What 4.0 does otherwise is not played: it calls a pod that failed without an end of its containers
    Failed, not Succeeded, and a retried workflow that is back in the queue Pending, so that it can be terminated there.
  * Mattermost: the follow state of threads, search, preferences, statuses, notifications, roles other than
    administrator and everybody else, the end of sessions, plugins, what is known of a team or a bot beside its name,
    permalinks and previews, post priority, guests, clusters, AllowedUntrustedInternalConnections, autocomplete_data,
    the payload limits of newer servers, rate limits by a header of the request.
"""

from bot.demo.embedded import EmbeddedWorld

__all__ = ["EmbeddedWorld"]
