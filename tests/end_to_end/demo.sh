#!/usr/bin/env bash
# scripts/demo shows every ending it promises, in time, and leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/../.."

export TMPDIR=$PERMIT_TESTS_DIR
SECONDS=0
timeout 90 scripts/demo | tee "$PERMIT_TESTS_DIR/demo.txt"
echo "took $SECONDS s"
((SECONDS <= 60))

# Which GPU is whose is chance; how each hold ends is not.
ended=$(awk '/^ *PERMIT +OUTCOME / { table = 1; next } /^$/ { table = 0 }
             table { print $4, $NF, $2, $3 }' "$PERMIT_TESTS_DIR/demo.txt" | sort)
diff <(echo "$ended") - <<'END'
train-1 1 released -
train-2 2 released -
train-3 3 holder_closed terminated
train-4 4 lease_expired timer
train-5 5 released -
train-6 6 released -
train-7 7 released -
train-8 8 released -
END
totals=$(awk '/^  POOL / { getline; print $1, $2, $4, $6, $8, $10, $12 }' "$PERMIT_TESTS_DIR/demo.txt")
[[ $totals == 'gpu-pool 8 6 1 1 0 0' ]] || { echo "the totals are: $totals"; exit 1; }
grep -q ' bob  train-1  permit:gpu-pool:.  fence 1  attempt . goes on after epoch ' \
  "$PERMIT_TESTS_DIR/demo.txt"

nothing_runs() {
  local url=$1
  if curl -s --max-time 2 "$url/livez"; then
    echo "the server at $url still runs"
    exit 1
  fi
  if cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -q "gpu_[t]raining worker.*$url"; then
    echo "a worker of the server at $url still runs"
    exit 1
  fi
}
url_in() { sed -n 's|^A server at \(http://[^,]*\),.*|\1|p' "$1"; }
nothing_runs "$(url_in "$PERMIT_TESTS_DIR/demo.txt")"
rm "$PERMIT_TESTS_DIR/demo.txt"

# Interrupted in the middle, it stops its server and its workers and removes its folder.
status=0
setsid timeout --signal=INT --foreground 3 scripts/demo >"$PERMIT_TESTS_DIR/half.txt" || status=$?
((status == 124))
nothing_runs "$(url_in "$PERMIT_TESTS_DIR/half.txt")"
rm "$PERMIT_TESTS_DIR/half.txt"
left=$(ls -A "$PERMIT_TESTS_DIR")
[[ -z $left ]] || { echo "left behind: $left"; exit 1; }
