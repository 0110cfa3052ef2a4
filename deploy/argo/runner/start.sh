#!/bin/bash
# Compiles the matrix runner from its mounted sources (a few seconds; the image has Rust) and becomes it.
set -euo pipefail

sources="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[[ -f "$sources/main.rs" ]] || sources="$sources/src"
binary="$(mktemp -d)/gputest-runner"
rustc --edition 2021 -C debuginfo=0 -C opt-level=1 -o "$binary" "$sources/main.rs"
exec "$binary"
