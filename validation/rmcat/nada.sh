#!/bin/sh
# Writes the reference of crates/proto/tests/all/ns3_nada.rs: the rates of the NADA controller of its authors
# (github.com/cisco/ns3-rmcat, Apache-2.0, at adb3f8e) on the reports of that test. FOLDER holds their
# nada-controller.{cc,h} and sender-based-controller.{cc,h}; without it they are fetched. None of it is committed.
#
#   validation/rmcat/nada.sh [FOLDER]
#
# It is compiled with double in place of float, since equality to 1e-6 after 100 000 reports is asserted; the largest
# difference to its single precision is printed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
theirs=${1:-}
if [ -z "$theirs" ]; then
    git clone --quiet https://github.com/cisco/ns3-rmcat "$work/clone"
    git -C "$work/clone" checkout --quiet adb3f8e
    theirs=$work/clone/model/congestion-control
fi
cp "$theirs"/nada-controller.* "$theirs"/sender-based-controller.* "$work"
(cd "$root" && TALKSPURT_NADA_REPORTS="$work/reports" cargo test --quiet -p talkspurt-proto --test all ns3_nada::rates > "$work/log" 2>&1) || { cat "$work/log"; exit 1; }
for precision in single double; do
    [ $precision = single ] || sed -i 's/\bfloat\b/double/g' "$work"/*-controller.*
    c++ -std=c++11 -O2 -I"$work" -o "$work/$precision" "$here/nada.cc" "$work"/*-controller.cc
    "$work/$precision" 50 < "$work/reports" > "$work/$precision.txt" 2> "$work/log" || { tail "$work/log"; exit 1; }
done
cp "$work/double.txt" "$root/crates/proto/tests/data/ns3-rmcat/rates.txt"
paste "$work/double.txt" "$work/single.txt" |
    awk '{ d = $2 / $1 - 1; if (d < 0) d = -d; if (d > m) m = d } END { print "single precision differs by at most", m }'
