#!/usr/bin/env bash
# Builds the Debian package, and prints where it is: packaging/deb.sh [REVISION] [FLAG OF CARGO-DEB]...
# PROFILE says how the server in it is built: `release`, unless it is set.
#
# Needs cargo-deb: `cargo install cargo-deb`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

revision="${1:-1}"
shift || true
profile="${PROFILE:-release}"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
generated="$target/$profile/package"

cargo build --profile "$profile" --locked -p tollgate-cli >&2
tollgate="$target/$profile/tollgate"
rm -rf "$generated"
mkdir -p "$generated/completions"
"$tollgate" man "$generated/man"
gzip --best --no-name "$generated/man"/*.1
"$tollgate" completions bash >"$generated/completions/tollgate.bash"
"$tollgate" completions zsh >"$generated/completions/_tollgate"
"$tollgate" completions fish >"$generated/completions/tollgate.fish"

# It says where the package is, in its last line. In `target/debian` it would remove older ones.
cargo deb --no-build --profile "$profile" --strip --locked -p tollgate-cli --deb-revision "$revision" \
    --output "$target/packages/" "$@" | tail -n 1
