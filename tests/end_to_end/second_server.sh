#!/usr/bin/env bash
# A second server on a database is refused and names the first; SIGTERM answers whoever waits.
set -euo pipefail

database=$PERMIT_TESTS_DIR/permit.db
first=
poll=
finish() {
  if [[ -n $poll ]]; then kill "$poll" 2>/dev/null || true; fi
  if [[ -n $first ]]; then kill -KILL "$first" 2>/dev/null || true; fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
fail() {
  echo "FAILED: $*"
  exit 1
}

start_first() {
  rm -f "$PERMIT_TESTS_DIR/first.log"  # its address is not the last one's
  "$PERMIT_BIN" server start --port 0 --db-filename "$database" >"$PERMIT_TESTS_DIR/first.log" 2>&1 &
  first=$!
  until url=$(sed -n 's/^API *//p' "$PERMIT_TESTS_DIR/first.log" 2>/dev/null) && [[ -n $url ]]; do
    kill -0 "$first" || fail "the first server did not start: $(cat "$PERMIT_TESTS_DIR/first.log")"
    sleep 0.05
  done
}

# refused <path of the database>
refused() {
  local status=0
  timeout 10 "$PERMIT_BIN" server start --port 0 --db-filename "$1" \
    >"$PERMIT_TESTS_DIR/second.log" 2>&1 || status=$?
  cat "$PERMIT_TESTS_DIR/second.log"
  ((status == 1)) || fail "the second server's exit code is $status"
  grep -q "\b$first\b" "$PERMIT_TESTS_DIR/second.log" || fail "process $first is not named"
  grep -q "$(hostname)" "$PERMIT_TESTS_DIR/second.log" || fail "host $(hostname) is not named"
  curl -sf "$url/livez" >/dev/null || fail "the first server does not answer any more"
}

start_first
refused "$database"
mkdir "$PERMIT_TESTS_DIR/other"
ln -s ../permit.db "$PERMIT_TESTS_DIR/other/alias.db"
refused "$PERMIT_TESTS_DIR/other/alias.db"  # the same file by another name
echo "ok  a second server exits 1 and names the first"

kill -KILL "$first"
wait "$first" 2>/dev/null || true
start_first
echo "ok  a dead server's lock is no lock"

# One poll of each kind that waits, an acquire in line, and a history.
namespace=$url/api/v1/namespaces/default
rpc=$url/temporal.api.workflowservice.v1.WorkflowService
ask() { curl -s -H 'Content-Type: application/json' "$@"; }
ask -X PUT "$namespace/pools/gpu" -d '{"capacity":1}' >/dev/null
ask "$namespace/pools/gpu/acquire" -d '{"requestId":"holder"}' >/dev/null
# How many requests wait; those of the server's own worker, too, which come after its start.
parked() { curl -s "$url/metrics" | sed -n 's/^permit_long_polls //p'; }
before=
until [[ -n $before && $before == "$(parked)" ]]; do
  before=$(parked)
  sleep 0.3
done
waits=()
wait_for() {
  ask --max-time 20 -o "$PERMIT_TESTS_DIR/answer.${#waits[@]}" -w '%{http_code}\n' "$@" \
    >"$PERMIT_TESTS_DIR/status.${#waits[@]}" &
  waits+=($!)
}
wait_for "$rpc/PollWorkflowTaskQueue" -d '{"namespace":"default","taskQueue":{"name":"idle"}}'
wait_for "$rpc/PollActivityTaskQueue" -d '{"namespace":"default","taskQueue":{"name":"idle"}}'
wait_for "$namespace/pools/gpu/acquire" -d '{"requestId":"waiter"}'
wait_for "$namespace/workflows/permit:gpu:0/history?waitNewEvent=true&historyEventFilterType=2"
for _ in {1..200}; do  # until all of them wait
  if (($(parked) >= before + ${#waits[@]})); then break; fi
  sleep 0.05
done
(($(parked) >= before + ${#waits[@]})) || fail "$(parked) requests wait, not $before and ${#waits[@]}"
SECONDS=0
kill -TERM "$first"
status=0
wait "$first" || status=$?
((status == 0)) || fail "exit code $status after SIGTERM"
((SECONDS <= 5)) || fail "it took $SECONDS s to stop"
for i in "${!waits[@]}"; do
  wait "${waits[$i]}" || fail "wait $i was cut off without an answer"
  code=$(cat "$PERMIT_TESTS_DIR/status.$i")
  echo "    $code $(head -c 200 "$PERMIT_TESTS_DIR/answer.$i")"
  [[ $code == 20[02] ]] || fail "wait $i was answered with $code"
done
first=
echo "ok  SIGTERM: all ${#waits[@]} waits are answered, exit code 0 after $SECONDS s"

start_first
ask "$url/api/v1/namespaces/default/pools/gpu" | jq -e '.held == 1 and .waiting == 1' >/dev/null ||
  fail "the holder and the waiter are not there after a stop"
echo "ok  holder and waiter are still there"

# The database itself is locked, too: without its lock file, or under another name, it is still in use.
rm "$database.lock"
ln "$database" "$database.other"
for name in "$database" "$database.other"; do
  status=0
  "$PERMIT_BIN" server start --port 0 --db-filename "$name" >"$PERMIT_TESTS_DIR/second.log" 2>&1 ||
    status=$?
  cat "$PERMIT_TESTS_DIR/second.log"
  ((status == 1)) || fail "a second server on $name: exit code $status"
  grep -q 'has locked' "$PERMIT_TESTS_DIR/second.log" || fail "it does not say why"
done
ask -X PUT "$url/api/v1/namespaces/default/pools/late" -d '{"capacity":1}' |
  jq -e '.capacity == 1' >/dev/null || fail "the first server serves no more"
echo "ok  a database whose lock file was removed is still in use"
