#!/usr/bin/env bash
# Runs the README's blocks that are marked ```sh run, in order, against a fresh server.
set -euo pipefail
cd "$(dirname "$0")/../.."

server=
finish() {
  if [[ -n $server ]]; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" || true
  fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

"$PERMIT_BIN" server start --port 0 --db-filename "$PERMIT_TESTS_DIR/permit.db" \
  >"$PERMIT_TESTS_DIR/server.log" 2>&1 &
server=$!
until address=$(sed -n 's|^API *http://||p' "$PERMIT_TESTS_DIR/server.log") && [[ -n $address ]]; do
  kill -0 "$server"
  sleep 0.05
done

blocks=$(grep -c '^```sh run$' README.md)
((blocks >= 7)) || { echo "only $blocks blocks are marked to run"; exit 1; }
{
  echo 'set -euo pipefail; set -v'
  sed -n '/^```sh run$/,/^```$/{/^```/!p}' README.md | sed "s|127\.0\.0\.1:7376|$address|"
} >"$PERMIT_TESTS_DIR/tour.sh"
timeout 60 bash "$PERMIT_TESTS_DIR/tour.sh" >"$PERMIT_TESTS_DIR/tour.txt" 2>&1 || {
  cat "$PERMIT_TESTS_DIR/tour.txt"
  exit 1
}
cat "$PERMIT_TESTS_DIR/tour.txt"

# The tour says what should be seen; the last block is a refusal on purpose.
expect() {
  grep -qF -- "$1" "$PERMIT_TESTS_DIR/tour.txt" || { echo "missing: $1"; exit 1; }
}
expect '"state": "granted"'
expect '"fence": 1'
expect '"outcome": "released"'
expect '"eventType": "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED"'
expect '"holder": "train-1"'
expect 'did you mean gpu?'
errors=$(grep -c '"code":' "$PERMIT_TESTS_DIR/tour.txt" || true)
((errors == 1)) || { echo "$errors refusals, expected 1"; exit 1; }
echo "$blocks blocks ran"
