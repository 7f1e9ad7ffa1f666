#!/usr/bin/env bash
# Installs, runs, upgrades, removes and purges the Debian package, in a root of its own:
# packaging/test-deb.sh PACKAGE NEWER_PACKAGE
#
# The root has the essential packages of this machine, and nothing outside of it is touched. dpkg
# changes its root to run the scripts of packages, so this takes the rights of root.
set -euo pipefail

main() {
    (($# == 2)) || die "usage: packaging/test-deb.sh PACKAGE NEWER_PACKAGE"
    ((EUID == 0)) || die "dpkg installs as root alone: run this as root, or with sudo"
    local package newer
    package="$(realpath "$1")"
    newer="$(realpath "$2")"
    root="$(mktemp -d)"
    # As a root is: others may go through it.
    chmod 755 "$root"
    trap 'finish $?' EXIT

    step "contents"
    contents "$package"
    step "a root with the essential packages"
    make_root
    before="$(files)"

    step "install"
    dpkg_there --install "$package"
    [[ "$(status)" == "install ok installed" ]] || die "it is not installed: $(status)"
    is_enabled || die "the service is not enabled"
    serves "limit: 100/min"

    step "upgrade: what was changed stays"
    sed -i 's|limit: 100/min|limit: 77/min|' "$root/etc/tollgate/rules.yaml"
    grep -q 'limit: 77/min' "$root/etc/tollgate/rules.yaml" || die "the rules cannot be changed"
    mkdir "$root/var/lib/private/tollgate"
    echo kept >"$root/var/lib/private/tollgate/state"
    # Nobody answers questions here.
    dpkg_there --install "$newer" </dev/null
    [[ "$(version)" == "$(dpkg-deb -f "$newer" Version)" ]] || die "it is still $(version)"
    grep -q 'limit: 77/min' "$root/etc/tollgate/rules.yaml" || die "the upgrade lost the rules"
    grep -q kept "$root/var/lib/private/tollgate/state" || die "the upgrade lost the state"
    is_enabled || die "the upgrade disabled the service"
    serves 'limit: 77/min'

    step "remove: settings and state stay"
    dpkg_there --remove tollgate
    [[ ! -e "$root/usr/bin/tollgate" ]] || die "the binary is still there"
    [[ -e "$root/etc/tollgate/rules.yaml" ]] || die "the rules are gone"
    [[ -e "$root/var/lib/private/tollgate/state" ]] || die "the state is gone"

    step "install again, and purge: nothing stays"
    dpkg_there --install "$newer" </dev/null
    grep -q 'limit: 77/min' "$root/etc/tollgate/rules.yaml" || die "the rules are new ones"
    dpkg_there --purge tollgate
    diff <(echo "$before") <(files) || die "that is left, or gone"
    echo "ok"
}

# What is in the package, and what Debian's own checker says to it.
contents() {
    local list name
    list="$(dpkg-deb --contents "$1")"
    for name in \
        "-rwxr-xr-x.* ./usr/bin/tollgate$" \
        "-rw-r--r--.* ./lib/systemd/system/tollgate.service$|-rw-r--r--.* ./usr/lib/systemd/system/tollgate.service$" \
        "-rw-r--r--.* ./etc/tollgate/tollgate.toml$" \
        "-rw-r--r--.* ./etc/tollgate/rules.yaml$" \
        "-rw-r--r--.* ./usr/share/man/man1/tollgate.1.gz$" \
        "-rw-r--r--.* ./usr/share/man/man1/tollgate-rules-check.1.gz$" \
        "-rw-r--r--.* ./usr/share/bash-completion/completions/tollgate$" \
        "-rw-r--r--.* ./usr/share/zsh/vendor-completions/_tollgate$" \
        "-rw-r--r--.* ./usr/share/fish/vendor_completions.d/tollgate.fish$" \
        "-rw-r--r--.* ./usr/share/doc/tollgate/changelog.Debian.gz$" \
        "-rw-r--r--.* ./usr/share/doc/tollgate/copyright$"; do
        grep -qE -- "$name" <<<"$list" || die "the package lacks $name:
$list"
    done
    local control
    control="$(dpkg-deb --ctrl-tarfile "$1" | tar -xO ./conffiles)"
    [[ "$control" == $'/etc/tollgate/tollgate.toml\n/etc/tollgate/rules.yaml' ]] ||
        die "these are no settings that dpkg keeps: $control"
    # Nobody has asked Debian for this package, so no bug there is closed by it.
    lintian --allow-root --tag-display-limit 0 --fail-on error,warning \
        --suppress-tags initial-upload-closes-no-bugs "$1"
}

make_root() {
    local packages=() package folder
    # shellcheck disable=SC2046 # each word is a package
    mapfile -t packages < <(apt-cache --installed depends --recurse --no-recommends \
        --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
        $(dpkg-query -W -f '${Essential} ${Package}\n' | sed -n 's/^yes //p') |
        grep -E '^[a-z0-9]' | sort -u)
    # Where these are links, they must be before anything goes through them.
    for folder in bin sbin lib lib64; do
        [[ -L "/$folder" ]] || continue
        mkdir -p "$root/usr/$folder"
        ln -s "usr/$folder" "$root/$folder"
    done
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/dev" "$root/tmp" \
        "$root/var/lib/private"
    for package in "${packages[@]}"; do
        dpkg-query --listfiles "$package" 2>/dev/null || continue
        { dpkg-query --status "$package" && echo; } >>"$root/var/lib/dpkg/status"
        cp /var/lib/dpkg/info/"$package".* /var/lib/dpkg/info/"$package":*.* \
            "$root/var/lib/dpkg/info/" 2>/dev/null || true
    done | grep -vE '^/(bin|sbin|lib|lib64|\.)$' | sort -u >"$root/tmp/list"
    # What somebody removed from this machine is not missed.
    tar -C / --no-recursion --ignore-failed-read -cf - -T "$root/tmp/list" 2>/dev/null |
        tar -C "$root" -xf -
    rm "$root/tmp/list"
    [[ -e "$root/dev/null" ]] || mknod -m 666 "$root/dev/null" c 1 3 ||
        die "there can be no /dev/null in $root: run this where root may make devices"
    chroot "$root" /bin/sh -c 'perl -e 1' || die "scripts of packages cannot run in $root"
}

# dpkg, with its root there. Paths of packages are of this machine.
dpkg_there() {
    DEBIAN_FRONTEND=noninteractive dpkg --root="$root" "$@"
}

status() {
    dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Status}' tollgate
}

version() {
    dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Version}' tollgate
}

is_enabled() {
    [[ -L "$root/etc/systemd/system/multi-user.target.wants/tollgate.service" ]]
}

# serves TEXT: the installed binary serves the installed rules, which say this, as a user who owns
# nothing.
serves() {
    local log="$root/tmp/log" process address try
    : >"$log"
    chroot --userspec=65534:65534 "$root" /usr/bin/tollgate serve \
        --config /etc/tollgate/tollgate.toml --http off --forward-auth off --resp off --grpc off \
        --status 127.0.0.1:0 --admin 127.0.0.1:0 >"$log" 2>&1 &
    process=$!
    for ((try = 0; try < 600; try++)); do
        grep -q ' serving' "$log" && break
        kill -0 "$process" 2>/dev/null || die "it ended: $(cat "$log")"
        sleep 0.1
    done
    address="$(awk '$1 == "admin" { print $2 }' "$log")"
    "$root/usr/bin/tollgate" ready --server "$address" >/dev/null || die "it is not ready"
    "$root/usr/bin/tollgate" rules show --server "$address" | grep -qF "$1" ||
        die "it does not serve $1"
    kill -TERM "$process"
    wait "$process" || die "it ended badly: $(cat "$log")"
    rm "$log"
    echo "it serves the rules with '$1'"
}

# Everything in the root, but what dpkg itself writes.
files() {
    (cd "$root" && find . -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | sort)
}

step() {
    echo "-- $1"
}

die() {
    echo "test-deb.sh: $*" >&2
    exit 1
}

finish() {
    [[ -z "${root:-}" ]] || rm -rf "$root"
    exit "$1"
}

main "$@"
