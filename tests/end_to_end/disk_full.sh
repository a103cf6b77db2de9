#!/usr/bin/env bash
# The disk runs full: writes get 507, reads work, nothing acknowledged is lost; space returns, and
# so does the service. On a tmpfs of 8 MiB in a mount namespace of its own.
set -euo pipefail

if [[ ${1:-} != inside ]]; then
  as_root=(--map-root-user)
  if ((EUID == 0)); then as_root=(); fi
  if ! unshare "${as_root[@]}" --mount --propagation private true 2>/dev/null; then
    echo "this test needs a mount namespace, which is not allowed here"
    exit 77
  fi
  exec unshare "${as_root[@]}" --mount --propagation private "$0" inside
fi

disk=$PERMIT_TESTS_DIR/disk
mkdir "$disk"
if ! mount -t tmpfs -o size=8m tmpfs "$disk"; then
  echo "this test needs a tmpfs, which is not allowed here"
  exit 77
fi

server=
finish() {
  if [[ -n $server ]]; then kill -KILL "$server" 2>/dev/null || true; fi
  wait
  umount "$disk" || true
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
fail() {
  echo "FAILED: $*"
  exit 1
}

start_server() {
  cat "$PERMIT_TESTS_DIR/server.log" >>"$PERMIT_TESTS_DIR/earlier.log" 2>/dev/null || true
  rm -f "$PERMIT_TESTS_DIR/server.log"
  "$PERMIT_BIN" server start --no-permit-worker --port 0 --db-filename "$disk/permit.db" \
    >"$PERMIT_TESTS_DIR/server.log" 2>&1 &
  server=$!
  until url=$(sed -n 's/^API *//p' "$PERMIT_TESTS_DIR/server.log" 2>/dev/null) && [[ -n $url ]]; do
    kill -0 "$server" 2>/dev/null || fail "no start: $(cat "$PERMIT_TESTS_DIR/server.log")"
    sleep 0.05
  done
  url+=/api/v1/namespaces/default
}

# ask <method> <path> [body...]: sets status and answer, and the headers in $headers.
headers=$PERMIT_TESTS_DIR/headers.txt
ask() {
  local method=$1 path=$2
  shift 2
  if (($# > 0)); then set -- -H 'Content-Type: application/json' --data-binary "$@"; fi
  status=$(curl -sS --max-time 20 -X "$method" -D "$headers" -o "$PERMIT_TESTS_DIR/answer.txt" \
    -w '%{http_code}' "$@" "$url$path")
  answer=$(cat "$PERMIT_TESTS_DIR/answer.txt")
}
expect() {
  [[ $status == "$1" ]] || fail "$2: answered $status, not $1: $answer"
}
refused_as_full() {
  expect 507 "$1"
  jq -e '.details[0].reason == "DISK_FULL"' <<<"$answer" >/dev/null || fail "$1: $answer"
  grep -qi '^retry-after: [0-9]' "$headers" || fail "$1: no Retry-After"
}
# health <check> <its status> <livez> <readyz>: all at this moment.
health() {
  local url=${url%/api/*}
  ask GET "/readyz?verbose"
  expect "$4" readyz
  jq -e --arg name "$1" --arg status "$2" \
    '[.checks[]?, .details[]?.checks[]?] | any(.name == $name and .status == $status)' \
    <<<"$answer" >/dev/null || fail "readyz: $1 is not $2: $answer"
  ask GET /readyz
  expect "$4" readyz
  ask GET /livez
  expect "$3" livez
}
# Who signalled, in order, as the history has it.
signals() {
  ask GET "/workflows/writer/history?maximumPageSize=1000"
  expect 200 "history"
  jq -r '.history.events[].workflowExecutionSignaledEventAttributes.requestId // empty' \
    <<<"$answer"
}

start_server
health store ok 200 200
ask PUT /pools/gpu '{"capacity":2}'
ask POST /pools/gpu/acquire '{"requestId":"keeps","holder":"keeps","lease":"600s"}'
token=$(jq -r .token <<<"$answer")
ask POST /pools/gpu/acquire '{"requestId":"lapses","holder":"lapses","lease":"6s"}'
lapsing=$(jq -r '.slots[0].id + "?runId=" + .slots[0].runId' <<<"$answer")
ask POST /workflows/writer '{"workflowType":{"name":"W"},"taskQueue":{"name":"none"}}'
expect 200 start

# signal <request id>: 100 kB of history, which cannot be packed into less.
noise=$(head -c 75000 /dev/urandom | base64 -w 0)
printf '{"requestId":"ID","input":["%s"]}' "$noise" >"$PERMIT_TESTS_DIR/signal.json"
signal() {
  sed "s/ID/$1/" "$PERMIT_TESTS_DIR/signal.json" >"$PERMIT_TESTS_DIR/request.json"
  ask POST /workflows/writer/signal/fill "@$PERMIT_TESTS_DIR/request.json"
}
taken=()
for i in {1..100}; do
  signal "s$i"
  if [[ $status != 200 ]]; then break; fi
  taken+=("s$i")
done
refused_as_full "signal s$i"
echo "ok  full after ${#taken[@]} signals of 100 kB: 507 with Retry-After"

# Not a byte is left, also not in the log, which has room where commits stood that have been settled
# or refused: large starts take most of it, small ones the rest. What has not been settled is tried
# again after a second; then there may be room once more.
cat /dev/zero >"$disk/filler" 2>/dev/null || true
small='{"workflowType":{"name":"W"},"taskQueue":{"name":"none"}}'
jq -c --arg noise "${noise:0:20000}" '.input = [$noise]' <<<"$small" >"$PERMIT_TESTS_DIR/large.json"
i=0
for round in {1..10}; do
  before=$i
  for start in "@$PERMIT_TESTS_DIR/large.json" "$small"; do
    for _ in {1..200}; do
      i=$((i + 1))
      ask POST "/workflows/other$i" "$start"
      if [[ $status != 200 ]]; then break; fi
    done
  done
  if ((i == before + 2)); then break; fi  # both refused at once
  sleep 1.1
done
refused_as_full "start other$i"
health store failing 200 503
grep -q '"event":"store_full"' "$PERMIT_TESTS_DIR/server.log" || fail "the log does not say so"
# Once each time that it is full after it was not: at first, and for each start size of a round.
said() { grep -c "\"event\":\"$1\"" "$PERMIT_TESTS_DIR/server.log" || true; }
(($(said store_full) == $(said store_writable) + 1)) || fail "it says so too often"
(($(said store_full) <= 1 + 2 * round)) || fail "it says so too often: $(said store_full) times"
ask GET "/workflows/other$i"
expect 404 "a start that was refused"
ask POST /pools/gpu/acquire '{"requestId":"new","wait":"0s","lease":"1s"}'
[[ $status == 507 || $status == 423 ]] || fail "acquire: $status $answer"
SECONDS=0
ask POST /pools/gpu/acquire '{"requestId":"waits","wait":"20s"}'
refused_as_full "an acquire that would stand in line"
((SECONDS < 15)) || fail "it was refused only after $SECONDS s"  # a small row may still fit
# Meanwhile the lease of 6 s and the grace of 5 s end, and the server tries to write that down.
readers=()
for reader in 1 2 3; do
  (
    SECONDS=0
    while ((SECONDS < 10)); do
      curl -sS --max-time 5 -w '%{http_code}\n' -o /dev/null -o /dev/null -o /dev/null \
        "$url"/workflows/writer "$url"/pools/gpu "$url"/permits/permit:gpu:0
    done >"$PERMIT_TESTS_DIR/reads.$reader"
  ) &
  readers+=($!)
done
for _ in {1..100}; do
  signal refused
  refused_as_full 'a signal among reads'
done
wait "${readers[@]}"
cat "$PERMIT_TESTS_DIR"/reads.* | sort | uniq -c | sed 's/^/    /'
! grep -qv '^200$' "$PERMIT_TESTS_DIR"/reads.* || fail "a read was refused"
diff <(printf '%s\n' "${taken[@]}") <(signals) || fail "the history is not what was taken"
ask GET /pools/gpu
expect 200 pools
# The log may have room left where a refused commit stood: then the lease's end is in it.
jq -e '.held == 2 or (.held == 1 and [.outcomes[] | .outcome + " " + .cause] == ["lease_expired backstop"])' \
  <<<"$answer" >/dev/null || fail "the hold that lasts has ended: $answer"
ask GET /workflows/writer
expect 200 describe
kill -0 "$server" || fail "the server has ended"
echo "ok  reads work, and show what was taken and nothing else"

kill -KILL "$server"
wait "$server" 2>/dev/null || true
rm "$disk/filler"
mount -o remount,size=9m "$disk"
"$PERMIT_BIN" server start --no-permit-worker --port 0 --db-filename "$disk/permit.db" \
  >"$PERMIT_TESTS_DIR/no_room.log" 2>&1 && fail "it started without room for what the redo log has"
grep -q 'Make as much room as the log takes' "$PERMIT_TESTS_DIR/no_room.log" ||
  fail "no way out: $(cat "$PERMIT_TESTS_DIR/no_room.log")"
mount -o remount,size=20m "$disk"
start_server
diff <(printf '%s\n' "${taken[@]}") <(signals) || fail "after kill -9: not what was taken"
echo "ok  kill -9 in between loses nothing"

# Full again, and this time space returns while the server runs.
cat /dev/zero >"$disk/filler" 2>/dev/null || true
for i in {101..140}; do
  signal "s$i"
  if [[ $status != 200 ]]; then break; fi
  taken+=("s$i")
done
refused_as_full "signal s$i"
health store failing 200 503
rm "$disk/filler"
mount -o remount,size=32m "$disk"
for _ in {1..200}; do  # what has become due meanwhile comes first
  if curl -sf --max-time 5 -o "$PERMIT_TESTS_DIR/answer.txt" "${url%/api/*}/readyz"; then break; fi
  sleep 0.1
done
health store ok 200 200
ended=
for _ in {1..200}; do
  ask GET "/permits/$lapsing"
  ended=$(jq -r '.outcome + " " + .cause' <<<"$answer")
  if [[ $ended == "lease_expired backstop" ]]; then break; fi
  sleep 0.1
done
[[ $ended == "lease_expired backstop" ]] || fail "the lapsed permit did not end: $answer"
health timers ok 200 200
grep -q '"event":"store_writable"' "$PERMIT_TESTS_DIR/server.log" || fail "the log does not say so"
(($(cat "$PERMIT_TESTS_DIR"/{earlier,server}.log | grep '"event":"permit_closed"' | grep -c '"cause":"backstop"') == 1)) ||
  fail "the end of the permit, tried again and again, has not one line"
signal "s$i"
expect 200 "the signal that was refused, again"
taken+=("s$i")
signal "s$i"
expect 200 "and again"
diff <(printf '%s\n' "${taken[@]}") <(signals) || fail "a signal was lost, or landed twice"
ask POST /permits/permit:gpu:0/renew "{\"token\":\"$token\"}"
first=$status
ask POST /permits/permit:gpu:1/renew "{\"token\":\"$token\"}"
[[ "$first $status" == "200 410" || "$first $status" == "410 200" ]] ||
  fail "the holder should have one slot: $first $status $answer"
kill -TERM "$server"
status=0
wait "$server" || status=$?
server=
((status == 0)) || fail "exit code $status"
echo "ok  space returns: what was due is done, and writes are taken; ${#taken[@]} signals in order"

# A disk with room for the ballast: once it is full, what there is can be ended and nothing begun.
rm -f "$disk"/*
mount -o remount,size=64m "$disk"
start_server
ballast=$disk/permit.db.ballast
[[ -e $ballast ]] || fail "no ballast was made"
ask PUT /pools/gpu '{"capacity":3}'
ask POST /pools/gpu/acquire '{"requestId":"keeps","holder":"keeps","lease":"600s"}'
token=$(jq -r .token <<<"$answer")
kept=$(jq -r '.slots[0].id' <<<"$answer")
ask POST /pools/gpu/acquire '{"requestId":"lapses","holder":"lapses","lease":"1s"}'
lapsing=$(jq -r '.slots[0].id + "?runId=" + .slots[0].runId' <<<"$answer")
ask POST /workflows/writer '{"workflowType":{"name":"W"},"taskQueue":{"name":"none"}}'
expect 200 start
cat /dev/zero >"$disk/filler" 2>/dev/null || true
status=200
for i in {1..300}; do
  signal "b$i"
  if [[ $status != 200 ]]; then break; fi
done
refused_as_full "signal b$i"
[[ ! -e $ballast ]] || fail "the disk is full, and the ballast is there"
ask POST /workflows/new '{"workflowType":{"name":"W"},"taskQueue":{"name":"none"}}'
refused_as_full "a start on what the ballast has left"
ask POST /pools/gpu/acquire '{"requestId":"new","lease":"60s"}'
refused_as_full "an acquire on what the ballast has left"
health store failing 200 503
for _ in {1..200}; do  # after a write that failed, a second passes
  ask POST "/permits/$kept/release" "{\"token\":\"$token\"}"
  if [[ $status == 200 ]]; then break; fi
  sleep 0.1
done
expect 200 "a release while the disk is full"
for _ in {1..200}; do
  ask GET "/permits/$lapsing"
  ended=$(jq -r '.outcome + " " + .cause' <<<"$answer")
  if [[ $ended == "lease_expired backstop" ]]; then break; fi
  sleep 0.1
done
[[ $ended == "lease_expired backstop" ]] || fail "a full disk keeps a lease from ending: $answer"
ask GET /pools/gpu
jq -e '(.held // 0) == 0' <<<"$answer" >/dev/null || fail "somebody still holds: $answer"
echo "ok  on a full disk the ballast goes, permits end, and none begins"

rm "$disk/filler"
for _ in {1..100}; do
  ask POST /pools/gpu/acquire '{"requestId":"newer","lease":"60s"}'
  if [[ $status == 200 ]]; then break; fi
  sleep 0.1
done
expect 200 "an acquire when there is space again"
[[ -e $ballast ]] || fail "the ballast was not made again"
health store ok 200 200
kill -TERM "$server"
status=0
wait "$server" || status=$?
server=
((status == 0)) || fail "exit code $status"
echo "ok  with space comes the ballast again, and grants with it"
