#!/bin/sh
# Install what the tests on the real services need. From Debian: PostgreSQL, the openssl program, and for the test of the demo's
# chat page Chromium with the fonts that its screenshots show. From npm, locked: gitlab-ci-local, which resolves deploy/gitlab.
# The servers in Go are built by `python -m tests.real.rig.build`. Nothing is done if all are here already.
set -eu

say() { echo "install: $*"; }

resolver="$(dirname "$0")/../deploy/gitlab-ci-local"
if [ "$resolver/node_modules/.package-lock.json" -nt "$resolver/package-lock.json" ]; then
    say "gitlab-ci-local is here already"
elif command -v npm >/dev/null; then
    say "installing the locked gitlab-ci-local"
    npm ci --prefix "$resolver" --ignore-scripts --no-audit --no-fund
else
    say "npm (Node.js 18 or newer) is missing: the test that resolves deploy/gitlab will fail" >&2
fi

missing=""
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
command -v openssl >/dev/null || missing="$missing openssl"
command -v chromium >/dev/null || missing="$missing chromium"
[ -e /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf ] || missing="$missing fonts-noto-color-emoji"
[ -d /usr/share/fonts/truetype/open-sans ] || missing="$missing fonts-open-sans"
if [ -z "$missing" ]; then
    say "PostgreSQL, openssl, Chromium and its fonts are here already"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "there is no apt-get here: install PostgreSQL (10 or newer), openssl and Chromium yourself; missing:$missing" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    say "needs root for apt-get: run 'sudo $0'" >&2
    exit 1
fi

# Debian's package makes a database cluster and starts it. The rig has clusters of its own, on other ports, so both
# are switched off: the first by the package's own setting, the second by the policy that package scripts ask.
settings=/etc/postgresql-common/createcluster.conf
if [ ! -e "$settings" ]; then
    say "telling Debian not to make a database cluster of its own ($settings)"
    mkdir -p "$(dirname "$settings")"
    echo 'create_main_cluster = false' >"$settings"
fi
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    say "forbidding services to start while packages are installed ($policy, removed again at the end)"
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi

export DEBIAN_FRONTEND=noninteractive
say "installing from Debian:$missing"
apt-get update -qq
# shellcheck disable=SC2086  # a list of packages
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold $missing
say "done"
