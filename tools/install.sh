#!/bin/sh
# Installs eisen-core from a released archive:
#
#   install.sh [--to PREFIX] [FROM]
#
# FROM is the folder with the archive and SHA256SUMS, or its address; without it, the folder of this
# script. PREFIX is ~/.local by default; as root /usr/local. Nothing is written before the archive has the
# checksum that SHA256SUMS says.
set -eu

fail() { echo "error: $*" >&2; exit 1; }
usage() { sed -n 's/^# \{0,1\}//; 2,8p' "$0"; }

from= to=
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --to) [ $# -ge 2 ] || fail "--to needs a folder"; to=$2; shift 2 ;;
        --to=*) to=${1#--to=}; shift ;;
        -*) fail "there is no option $1; --help shows what there is" ;;
        *) [ -z "$from" ] || fail "one folder or address only"; from=$1; shift ;;
    esac
done
[ -n "$from" ] || from=$(dirname "$0")
if [ -z "$to" ]; then
    if [ "$(id -u)" = 0 ]; then to=/usr/local; else to=${HOME:?"set HOME, or give --to FOLDER"}/.local; fi
fi
case $(uname -s)-$(uname -m) in
    Linux-x86_64) arch=x86_64 ;;
    Linux-aarch64) arch=aarch64 ;;
    Darwin-*) fail "macOS is not supported" ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m): build from source" ;;
esac
for program in tar zstd sha256sum; do
    command -v "$program" >/dev/null 2>&1 || fail "$program is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
get() {
    case $from in
        http://* | https://* | file://*)
            if command -v curl >/dev/null 2>&1; then
                curl -fsSL -o "$work/$1" "${from%/}/$1" || fail "cannot get ${from%/}/$1"
            elif command -v wget >/dev/null 2>&1; then
                wget -q -O "$work/$1" "${from%/}/$1" || fail "cannot get ${from%/}/$1"
            else
                fail "neither curl nor wget is installed"
            fi
            ;;
        *) cp "$from/$1" "$work/$1" || fail "cannot read $from/$1" ;;
    esac
}

get SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]\{64\}  \(eisen-core-[0-9A-Za-z.+-]*-$arch-linux-gnu\.tar\.zst\)\$/\1/p" "$work/SHA256SUMS")
case $archive in
    '') fail "$from has no archive for $arch" ;;
    *[!0-9A-Za-z._+-]*) fail "$from has several archives for $arch" ;;
esac
get "$archive"
(cd "$work" && grep -F "  $archive" SHA256SUMS | sha256sum -c --status) ||
    fail "$archive is not the file that SHA256SUMS names: nothing was installed"
mkdir "$work/unpacked"
zstd -q -d -c "$work/$archive" | tar -C "$work/unpacked" -xf - --no-same-owner
name=${archive%.tar.zst}
"$work/unpacked/$name/bin/eisen-core" --version >/dev/null ||
    fail "the program does not run on this machine: its C library may be older than the archive's"

# Each file is complete before it has its name, so a running program keeps its own.
(cd "$work/unpacked/$name" && find . -type f) | while read -r file; do
    mkdir -p "$(dirname "$to/$file")"
    cp "$work/unpacked/$name/$file" "$to/$file.new.$$"
    mv -f "$to/$file.new.$$" "$to/$file"
done
echo "installed $("$to/bin/eisen-core" --version) in $to"
case :$PATH: in
    *":$to/bin:"*) ;;
    *) echo "$to/bin is not on PATH: export PATH=\"$to/bin:\$PATH\", in the shell's startup file too" ;;
esac
