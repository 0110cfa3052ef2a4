#!/bin/sh
# Says whether a push touches what the GPU tests cover: writes `true` or `false` to OUT/ml-changed.
#
#   detect-changes.sh REPOSITORY BEFORE AFTER BRANCH OUT
#
# REPOSITORY is a clone's folder or an address; BEFORE is the commit that the branch had before the push, empty or all
# zeros for its first one; AFTER is all zeros for a branch that was deleted. Paths are compared by folder: crates/ml is not
# crates/mlops. On doubt the answer is true: a test run too many costs money, one too few costs trust. Works with the sh of
# a git-only image.
set -eu

repository=$1
before=$2
after=$3
branch=$4
out=$5

folders="crates/ml crates/ml-dqn crates/ml-core crates/ml-regime crates/ml-features crates/ml-supervised
crates/ml-ppo crates/ml-ensemble crates/ml-hyperopt crates/ml-labeling"

say() {
  echo "ml-changed=$1: $2"
  printf '%s' "$1" >"$out/ml-changed"
  exit 0
}

refuse() {
  echo "refused: $1" >&2
  exit 2
}

# A branch or a SHA from a push event becomes part of a manifest and a git call: nothing but harmless characters.
is_sha() {
  case $1 in *[!0-9a-f]* | "") return 1 ;; esac
  [ "${#1}" -eq 40 ]
}
is_sha "$after" || refuse "commit-sha is no full SHA"
case $branch in *[!A-Za-z0-9._/+-]* | -* | "") refuse "branch has characters that are not accepted" ;; esac

mkdir -p "$out"
# The branch as a label's value: at most 63 characters, a letter or digit at both ends.
printf '%s' "$branch" | tr '/+' '--' | cut -c 1-63 | sed 's/^[._-]*//; s/[._-]*$//' | tr -d '\n' >"$out/branch-label"

case $after in
*[!0]*) ;;
*) say false "the branch was deleted" ;;
esac

clone=$repository
if ! [ -d "$repository" ]; then
  clone=$(mktemp -d)
  # Trees are enough to compare paths, so no file's content is fetched.
  git clone --quiet --bare --filter=blob:none -- "$repository" "$clone" || say true "the repository could not be cloned"
fi

has() {
  git -C "$clone" cat-file -e "$1^{commit}" 2>/dev/null || git -C "$clone" fetch --quiet origin "$1" 2>/dev/null
}

has "$after" || say true "commit $after is not in the repository"
base=$before
case $before in
*[!0]*)
  is_sha "$before" || say true "the commit before the push is no SHA"
  # After a force push the old commit may be gone; while it is there, the two trees tell what is new to the branch.
  has "$before" || say true "the commit before the push is gone"
  ;;
*)
  # A branch's first push: all that it brings beside the default branch.
  default=$(git -C "$clone" symbolic-ref --quiet refs/remotes/origin/HEAD || git -C "$clone" symbolic-ref --quiet HEAD || true)
  base=$(git -C "$clone" merge-base "$after" "$default" 2>/dev/null || true)
  [ -n "$base" ] && [ "$base" != "$after" ] || say true "first push, nothing to compare with"
  ;;
esac

# Two trees, not a log: what a merge brought counts too. Without rename detection both sides of a move are listed.
# The pathspec is by folder: a trailing slash never matches crates/mlops.
set --
for folder in $folders; do
  set -- "$@" ":(literal)$folder/"
done
if changed=$(git -C "$clone" diff --no-renames --name-only "$base" "$after" -- "$@"); then
  [ -z "$changed" ] || say true "$(printf '%s\n' "$changed" | head -n 5 | tr '\n' ' ')"
  say false "nothing below the tested crates"
fi
say true "git could not compare $base with $after"
