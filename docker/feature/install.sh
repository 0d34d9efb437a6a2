#!/bin/sh
# Installs treesweep into a dev container, from the executable that lies beside this script (scripts/build-feature puts
# it there). Nothing is fetched, so that an image builds without a network, and always gets the same program.
#
# usage: [DIRECTORY=/usr/local/bin] install.sh        (as root, as the dev container tools call it)
set -eu

directory=${DIRECTORY:-/usr/local/bin}
here=$(cd "$(dirname "$0")" && pwd)

die() { echo "treesweep feature: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "install.sh has to be run as root"
[ -f "$here/treesweep" ] || die "$here/treesweep is missing: scripts/build-feature makes a feature that has it"
case $directory in
    /*) ;;
    *) die "'$directory' is not an absolute directory" ;;
esac

mkdir -p "$directory"
# Renamed into its place, so that a program that is running is never half of another one.
cp "$here/treesweep" "$directory/.treesweep.new"
chmod 755 "$directory/.treesweep.new"
version=$("$directory/.treesweep.new" --version) || {
    rm -f "$directory/.treesweep.new"
    die "the executable does not run here ($(uname -m)): build the feature on a machine of this kind"
}
mv -f "$directory/.treesweep.new" "$directory/treesweep"
# Git finds `git treesweep` by this name.
ln -sf treesweep "$directory/git-treesweep"
echo "$version installed in $directory"
case :$PATH: in
    *":$directory:"*) ;;
    *) echo "treesweep feature: $directory is not on the PATH of this shell" >&2 ;;
esac
