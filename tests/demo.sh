#!/usr/bin/env bash
# Runs the demo, with the command given, until its last scene; then Ctrl-C. It must have played as
# docs/demo/console.txt has it, end well, and leave no changed file behind.
set -euo pipefail
EISEN_DIR=$(mktemp -d)
export EISEN_DIR
out=$EISEN_DIR/out
before=$(git status --porcelain)
trap 'rm -rf "$EISEN_DIR"' EXIT

"$@" --port 0 >"$out" 2>"$EISEN_DIR/err" &
demo=$!
wait_for() {
    # Ends with the line, or with the demo.
    grep -q -m1 -E "$1" < <(tail --pid="$demo" -n +1 -F "$out" 2>/dev/null) || {
        echo "the demo never said: $1"
        cat "$EISEN_DIR/err" "$out"
        kill "$demo"
        exit 1
    }
}
wait_for 'pending b[0-9]+: read'
wait_for 'allowed b[0-9]+: read'
wait_for 'denied b[0-9]+: write'
for agent in lead ui api; do wait_for "$agent +[a-z0-9]+ turn ended: end_turn"; done
kill -INT "$demo"
wait "$demo"
test "$(git status --porcelain)" = "$before" || { echo "the demo changed the checkout"; exit 1; }
# Agents play side by side, so that only what each of them does is the same each time. And a line is
# what came of one tick: a busy machine may show a read before the write or the denial that follows.
events() {
    # Where PATH does not lead to the program, the console calls it by its path.
    sed -E '/tokens/d; /listens on/d; s/^ *[0-9.]+s +//; s/ \(pid [0-9]+\)//; s#[^ ]+/eisen-core#eisen-core#g' "$1" |
        sed -E '/^ui +reads src\/api/d' | sort -u
}
diff <(events docs/demo/console.txt) <(events "$out") || {
    echo "the demo did not play as docs/demo/console.txt has it"
    exit 1
}
cat "$out"
