#!/usr/bin/env bash
# scripts/demo shows every ending it promises, in time, and leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/../.."

export TMPDIR=$PERMIT_TESTS_DIR
SECONDS=0
timeout 90 scripts/demo | tee "$PERMIT_TESTS_DIR/demo.txt"
echo "took $SECONDS s"
((SECONDS <= 60))

table=$(sed -n '/^  PERMIT/,$p' "$PERMIT_TESTS_DIR/demo.txt")
ended=$(awk 'NR > 1 { print $1, $2, $4, $5, $6 }' <<<"$table")
diff <(echo "$ended") - <<'END'
permit:gpu:0 train-llama 1 released -
permit:gpu:0 train-stuck 2 lease_expired timer
permit:gpu:0 backup.sh 3 released -
END
rm "$PERMIT_TESTS_DIR/demo.txt"

# Interrupted in the middle, it stops its server and removes its folder.
status=0
setsid timeout --signal=INT --foreground 3 scripts/demo >"$PERMIT_TESTS_DIR/half.txt" || status=$?
((status == 124))
url=$(sed -n 's|^A server at \(http://[^,]*\),.*|\1|p' "$PERMIT_TESTS_DIR/half.txt")
if curl -s --max-time 2 "$url/livez"; then
  echo "the server at $url still runs"
  exit 1
fi
rm "$PERMIT_TESTS_DIR/half.txt"
left=$(ls -A "$PERMIT_TESTS_DIR")
[[ -z $left ]] || { echo "left behind: $left"; exit 1; }
