#!/bin/bash
# Runs the whole matrix on the sample workspace of a machine with an NVIDIA GPU, as the pod does it, and leaves the results:
#   tests/deploy/on_gpu.sh OUT [CAP]
# It needs cargo, rustc, git and the driver; no CUDA toolkit.
set -euo pipefail

out="$(realpath -m "$1")"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
work="$(mktemp -d)"
mkdir -p "$out"

cp -rL "$root/tests/sample-workspace" "$work/repository"
git -C "$work/repository" init --quiet --initial-branch=main
git -C "$work/repository" add --all --force
git -C "$work/repository" -c user.name=sample -c user.email=sample@example.com commit --quiet -m sample

mkdir "$work/data"
cp -r "$work/repository/data/smoke-test/." "$work/data/"

export GPUTEST_MODELS=all GPUTEST_SCOPE=all GPUTEST_EPOCHS=5 GPUTEST_REF=HEAD
export GPUTEST_REPOSITORY="$work/repository" GPUTEST_CHECKOUT="$work/volume/checkout"
export GPUTEST_SUITES="$root/deploy/argo/runner/suites.tsv" GPUTEST_RESULTS="$out/results.json"
export CARGO_TARGET_DIR="$work/volume" CUDA_COMPUTE_CAP="${2:-90}" TEST_DATA_DIR="$work/data"
export CUDA_VISIBLE_DEVICES=0 CARGO_TERM_COLOR=never ARGO_PROGRESS_FILE="$out/progress"

code=0
bash "$root/deploy/argo/runner/start.sh" >"$out/log" 2>&1 || code=$?
grep -E "^##gputest|^GPU " "$out/log"
sed -n '/=== GPU TEST RESULTS/,$p' "$out/log"
echo "exit code $code, progress $(cat "$out/progress")"
exit "$code"
