#!/bin/bash
# Starts a GPU test run by hand, through argo or kubectl, whichever is there (kubectl where both are).
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: argo-test.sh [options]

  --models LIST    comma-separated, or all for the ten        (dqn,ppo,tft)
  --scope SCOPE    lib, integration or all                    (all)
  --epochs N       training epochs of the smoke tests         (3)
  --ref REF        SHA, branch or tag; HEAD: default branch   (HEAD)
  --pool POOL      GPU node pool                              (ci-training-h100)
  --cap CAP        CUDA compute capability, follows the pool  (90)
  --no-notify      post nothing about this run
  --watch          follow the run's log; the exit status is its verdict
  --dry-run        print the Workflow instead of submitting it
  --help           this text

Environment: GPUTEST_NAMESPACE (foxhunt), GPUTEST_CLIENT (kubectl or argo).

Examples:
  argo-test.sh
  argo-test.sh --models dqn --scope lib
  argo-test.sh --models all --epochs 5
  argo-test.sh --models dqn,ppo --watch
TEXT
}

die() {
  echo "argo-test.sh: $1" >&2
  exit 2
}

models="dqn,ppo,tft" scope="all" epochs="3" ref="HEAD" pool="ci-training-h100" cap="" notify="true"
watch="" dry_run=""
namespace="${GPUTEST_NAMESPACE:-foxhunt}"

while (($#)); do
  case $1 in
    --models | --scope | --epochs | --ref | --pool | --cap)
      [[ $# -ge 2 ]] || die "$1 needs a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    --no-notify) notify="false" && shift ;;
    --watch) watch=yes && shift ;;
    --dry-run) dry_run=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    *) die "no such option: $1 (--help lists them)" ;;
  esac
done

# Values become part of a manifest: nothing but what each of them may be.
[[ $models =~ ^[a-z0-9]+(,[a-z0-9]+)*$ ]] || die "models: a comma-separated list of names, not '$models'"
[[ $scope =~ ^(lib|integration|all)$ ]] || die "scope: lib, integration or all, not '$scope'"
[[ $epochs =~ ^[1-9][0-9]{0,3}$ ]] || die "epochs: a number from 1 to 9999, not '$epochs'"
[[ $ref =~ ^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}$ && $ref != *..* ]] || die "ref: a branch, tag or SHA, not '$ref'"
[[ $pool =~ ^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$ ]] || die "pool: the name of a node pool, not '$pool'"

# A build for another capability is refused before a GPU is spent on it.
case $pool in
  ci-training-h100) expected=90 ;;
  ci-training | ci-compile) expected=89 ;;
  *) expected="" ;;
esac
cap="${cap:-$expected}"
[[ $cap =~ ^[0-9]{2,3}$ ]] || die "cap: give the compute capability of pool '$pool', such as 90"
[[ -z $expected || $cap == "$expected" ]] || die "cap: the GPUs of $pool have $expected, not $cap"

client="${GPUTEST_CLIENT:-}"
if [[ -z $client ]]; then
  for candidate in kubectl argo; do
    if command -v "$candidate" >/dev/null; then
      client=$candidate
      break
    fi
  done
fi
[[ -n $client || -n $dry_run ]] || die "neither kubectl nor argo is installed"

# Where the bot reports, the run is held for it from birth; the nightly says whether there is one.
bot_is_there() {
  case $client in
    kubectl) kubectl -n "$namespace" get cronworkflow gpu-test-nightly -o yaml 2>/dev/null ;;
    argo) argo -n "$namespace" cron get gpu-test-nightly -o yaml 2>/dev/null ;;
  esac | grep "gputest.bot/report" >/dev/null
}

finalizers="[]"
if [[ -n $client ]] && bot_is_there; then
  finalizers='["gputest.bot/report"]'
fi

manifest() {
  cat <<YAML
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: gpu-test-manual-
  namespace: $namespace
  finalizers: $finalizers
spec:
  workflowTemplateRef:
    name: gpu-test-pipeline
  priority: 30
  podPriorityClassName: gpu-test-manual
  arguments:
    parameters:
      - {name: models, value: "$models"}
      - {name: test-scope, value: "$scope"}
      - {name: epochs, value: "$epochs"}
      - {name: commit-ref, value: "$ref"}
      - {name: gpu-pool, value: "$pool"}
      - {name: cuda-compute-cap, value: "$cap"}
      - {name: notify, value: "$notify"}
YAML
}

if [[ -n $dry_run ]]; then
  manifest
  exit 0
fi

if [[ $client == kubectl ]]; then
  name="$(manifest | kubectl create -f - -o "jsonpath={.metadata.name}")"
else
  name="$(manifest | argo -n "$namespace" submit - -o name)"
fi
name="${name##*/}"
echo "submitted $name (models $models, scope $scope, epochs $epochs, ref $ref, pool $pool)"
[[ -n $watch ]] || exit 0

phase() {
  if [[ $client == kubectl ]]; then
    kubectl -n "$namespace" get workflow "$name" -o "jsonpath={.status.phase}"
  else
    argo -n "$namespace" get "$name" -o json | sed -n 's/^ *"phase": "\(Succeeded\|Failed\|Error\)".*/\1/p' | tail -n 1
  fi
}

# The log can break off before the run ends (the pod is removed when it is done), so the verdict is the Workflow's.
follow() {
  if [[ $client == kubectl ]]; then
    kubectl -n "$namespace" logs --follow --pod-running-timeout=20m --container main --ignore-errors \
      --selector "workflows.argoproj.io/workflow=$name,gputest.bot/role=test" || true
  else
    argo -n "$namespace" logs --follow "$name" || true
  fi
}

shown=""
while true; do
  case "$(phase)" in
    Succeeded) echo "$name passed" && exit 0 ;;
    Failed | Error) echo "$name did not pass" && exit 1 ;;
  esac
  if [[ -z $shown ]] && { [[ $client == argo ]] || [[ -n "$(kubectl -n "$namespace" get pods --output name \
    --selector "workflows.argoproj.io/workflow=$name,gputest.bot/role=test" --field-selector status.phase=Running)" ]]; }; then
    follow
    shown=yes
  fi
  sleep "${GPUTEST_POLL_SECONDS:-5}"
done
