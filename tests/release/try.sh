#!/usr/bin/env bash
# Installs what tools/release made in an empty Debian, as an ordinary user would:
#
#   tests/release/try.sh FOLDER     as root; needs debootstrap and the archive of Debian
#
# Prints a line for each thing that it tried; ends with 1 at the first that fails.
set -euo pipefail

fail() { echo "FAILED: $*" >&2; exit 1; }
tried() { echo "ok: $*"; }

from=$(realpath "$1")
root=$(mktemp -d)
trap 'umount -q "$root/proc" || true; rm -rf "$root"' EXIT
chmod 755 "$root"
debootstrap --variant=minbase --include=zstd,git,man-db bookworm "$root" >"$root.log" 2>&1 ||
    { tail -5 "$root.log"; fail "debootstrap"; }
rm -f "$root.log"
mount -t proc proc "$root/proc"
install -d "$root/srv/release"
install -m 644 -t "$root/srv/release" "$from"/*
chroot "$root" useradd --create-home person
as_person() { chroot "$root" su - person -c "$1"; }

as_person 'sh /srv/release/install.sh /srv/release' || fail "install.sh"
as_person '~/.local/bin/eisen-core --version' | grep -q '^eisen-core ' || fail "the program does not start"
tried "an ordinary user installed it to ~/.local: $(as_person '~/.local/bin/eisen-core --version')"
as_person 'test -s ~/.local/share/man/man1/eisen-core.1.gz' || fail "no man page"
as_person 'test -s ~/.local/share/bash-completion/completions/eisen-core' || fail "no completion"
as_person 'test -s ~/.local/share/doc/eisen-core/docs/guides/phone.md' || fail "no docs"
tried "man pages, completions and docs are there"
as_person 'git init -q shop && cd shop && ~/.local/bin/eisen-core up 2>&1; test $? = 1' |
    grep -q 'npm install' || fail "up without agents does not say what to install"
tried "up without agents says what to install"

chroot "$root" cp -r /srv/release /srv/broken
printf x >>"$(echo "$root"/srv/broken/*.tar.zst)"
if as_person 'sh /srv/broken/install.sh --to ~/other /srv/broken' 2>/dev/null; then
    fail "a broken archive was installed"
fi
as_person 'test ! -e ~/other' || fail "a broken archive was written"
tried "a broken archive is refused, and nothing is written"

as_person 'rm ~/.local/bin/eisen-core'
package=$(cd "$from" && ls -- *.deb)
chroot "$root" apt-get install -y -qq "/srv/release/$package" >/dev/null 2>&1 || fail "apt-get install"
as_person 'eisen-core --version && man -w eisen-core && eisen-core dev schema | head -c 1' >/dev/null ||
    fail "the package does not work"
chroot "$root" apt-get remove -y -qq eisen-core >/dev/null 2>&1 || fail "apt-get remove"
as_person 'command -v eisen-core' && fail "the package leaves its program"
tried "apt installs the package, and removes it"
