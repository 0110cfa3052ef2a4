#!/bin/bash
# Copies the test data from the training data again: makes a new populate Job, waits for its end, says how it went.
# Exit status: 0 refreshed, 1 refused or failed (the old data is in place), 3 a volume is held elsewhere, 2 wrong use.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: refresh-test-data.sh [--namespace NAME] [--timeout SECONDS] [--help]

Needs kubectl. A training that holds training-data-pvc on another node makes the Job wait for ever; that is found
out before and while it waits, and said.
TEXT
}

namespace=foxhunt timeout=1800 pool=ci-training-h100
while (($#)); do
  case $1 in
    --namespace | --timeout)
      [[ $# -ge 2 ]] || { echo "refresh-test-data.sh: $1 needs a value" >&2 && exit 2; }
      declare "${1#--}=$2"
      shift 2
      ;;
    -h | --help) usage && exit 0 ;;
    *) echo "refresh-test-data.sh: no such option: $1" >&2 && usage >&2 && exit 2 ;;
  esac
done
[[ $timeout =~ ^[1-9][0-9]*$ ]] || { echo "refresh-test-data.sh: timeout is no number of seconds" >&2 && exit 2; }
poll="${GPUTEST_POLL_SECONDS:-5}"
training="$(cd "$(dirname "${BASH_SOURCE[0]}")/../training" && pwd)"
kube() { kubectl -n "$namespace" "$@"; }

# Pods that use a claim and have a node: "pod node claim,claim,". Finished pods hold no volume.
# shellcheck disable=SC2016  # the dollar is kubectl's own language
users='{{range .items}}{{$phase := .status.phase}}{{if and .spec.nodeName (ne $phase "Succeeded") (ne $phase "Failed")}}{{.metadata.name}} {{.spec.nodeName}} {{range .spec.volumes}}{{if .persistentVolumeClaim}}{{.persistentVolumeClaim.claimName}},{{end}}{{end}}{{"\n"}}{{end}}{{end}}'
holder=""
while read -r pod node claims; do
  [[ ",$claims" =~ ,(training-data-pvc|test-data-pvc), ]] || continue
  claim="${BASH_REMATCH[1]}"
  where="$(kubectl get node "$node" -o 'jsonpath={.metadata.labels.k8s\.scaleway\.com/pool-name}' || true)"
  if [[ $where != "$pool" ]]; then
    holder="$claim is held by pod $pod on node $node (pool ${where:-unknown}); the job has to run in $pool"
  fi
done < <(kube get pods -o go-template="$users")
if [[ -n $holder ]]; then
  echo "not refreshed, the old data is in place: $holder. Try again when that pod has ended." >&2
  exit 3
fi

kube apply -k "$training" >/dev/null
job="$(kube create -f "$training/populate-test-data-job.yaml" -o name)"
echo "created $job"

# A log that can't be had changes nothing about how the job went.
log() { kube logs --pod-running-timeout=1s "$1" || true; }

held() {
  kube get events -o 'jsonpath={range .items[*]}{.involvedObject.name} {.reason} {.message}{"\n"}{end}' |
    grep -F "${job##*/}-" | grep -E "Multi-Attach|FailedAttachVolume|volume node affinity" | tail -n 1 || true
}

deadline=$((SECONDS + timeout))
while true; do
  state="$(kube get "$job" -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type} {end}')"
  case " $state " in
    *" Complete "*)
      log "$job"
      echo "refreshed"
      exit 0
      ;;
    *" Failed "*)
      log "$job" >&2
      echo "not refreshed, the old data is in place: $job failed" >&2
      exit 1
      ;;
  esac
  reason="$(held)"
  if [[ -n $reason ]] || ((SECONDS >= deadline)); then
    kube delete "$job" --wait=false >/dev/null
    echo "not refreshed, the old data is in place: ${reason:-no end within $timeout s}" >&2
    [[ -n $reason ]] && exit 3
    exit 1
  fi
  sleep "$poll"
done
