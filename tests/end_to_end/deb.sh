#!/usr/bin/env bash
# The Debian packages: what is in them, lintian, and the command that comes out of them. With
# --chroot also the life of them in a fresh Debian: installed, run, upgraded, removed, purged; that
# takes root, a mirror (the one apt uses here) and minutes, so scripts/package --check does it.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(dirname "$(realpath "$PERMIT_BIN")")
scratch=$(realpath "$PERMIT_TESTS_DIR")
root=$scratch/debian
server=
finish() {
  if [[ -n $server ]]; then kill -KILL "$server" 2>/dev/null || true; fi
  rm -rf "$root"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
fail() {
  echo "FAILED: $*"
  exit 1
}
skip() {
  echo "$*"
  exit 77
}

for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v "$tool" >/dev/null || skip "$tool is missing: scripts/setup --test"
done

# packages <revision>: made into $scratch/<revision>/
packages() {
  cpack -G DEB --config "$build/CPackConfig.cmake" -B "$scratch/$1" \
    -D CPACK_DEBIAN_PACKAGE_RELEASE="$1" >"$scratch/cpack.log" 2>&1 ||
    { cat "$scratch/cpack.log"; fail "cpack"; }
  rm -rf "$scratch/$1/_CPack_Packages"
}

# contains <package> <path>...
contains() {
  local path list
  list=$(dpkg-deb --fsys-tarfile "$1" | tar -tf -)
  for path in "${@:2}"; do
    grep -qxF -- "./$path" <<<"$list" || fail "$path is not in $1: $list"
  done
}

packages 1
version=$(sed -n 's/^project(permit VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
permit=$(echo "$scratch"/1/permit_"$version"-1_*.deb)
dev=$(echo "$scratch"/1/libpermit-dev_"$version"-1_*.deb)
python=$scratch/1/python3-permit_$version-1_all.deb
unit=usr/lib/systemd/system
contains "$permit" usr/bin/permit etc/permit/server.toml "$unit/permit.service" \
  "$unit/permit-worker@.service" usr/share/doc/permit/copyright usr/share/man/man1/permit.1.gz \
  usr/share/bash-completion/completions/permit usr/share/permit/monitoring/permit.rules.yml
contains "$dev" usr/include/permit/permits/semaphore.h usr/lib/cmake/permit/permitConfig.cmake
contains "$python" usr/lib/python3/dist-packages/permit.py
[[ $(dpkg-deb --field "$permit" Depends) == *libsqlite3-0*libssl3*libstdc++6* ]] || fail "no dependencies"
[[ $(dpkg-deb --info "$permit" conffiles) == /etc/permit/server.toml ]] || fail "conffiles"
for package in "$permit" "$dev" "$python"; do
  dpkg-deb --info "$package" >"$scratch/info"
  if dpkg-deb --contents "$package" | grep -vE '^[-dl][-rwx]{9} root/root '; then
    fail "not root's, or setuid: above"
  fi
done
echo "ok  three packages: $(du -ch "$permit" "$dev" "$python" | tail -n 1 | cut -f 1)"

if command -v lintian >/dev/null; then
  lintian "$permit" "$dev" "$python" >"$scratch/lintian" 2>/dev/null || true
  if grep '^E:' "$scratch/lintian"; then fail "lintian"; fi
  echo "ok  lintian: no error, $(grep -c '^W:' "$scratch/lintian" || true) warnings"
else
  echo "SKIPPED lintian, which is not installed: scripts/setup --test"
fi

# use_it <command prefix...>: the installed command serves and takes a permit.
use_it() {
  local address= said
  said=$("$@" permit version --address http://127.0.0.1:1) || fail "permit version: $?"
  grep -qx "permit $version" <<<"$said" || fail "permit version: $said"
  "$@" permit server start-dev --port 0 >"$scratch/server.log" 2>&1 &
  server=$!
  until address=$(sed -n 's/^API *//p' "$scratch/server.log") && [[ -n $address ]]; do
    kill -0 "$server" || { cat "$scratch/server.log"; fail "the server did not start"; }
    sleep 0.05
  done
  curl -sf "$address/api/v1/namespaces/default/pools/demo/acquire" \
    -H 'Content-Type: application/json' -d '{"requestId": "deb", "holder": "the package"}' |
    jq -e '.state == "granted"' >/dev/null || fail "acquire"
  said=$("$@" permit list --address "$address") || fail "permit list: $?"
  grep -q 'the package' <<<"$said" || fail "permit list: $said"
  kill -TERM "$server"
  wait "$server" || fail "the server's exit code is $?"
  server=
}

mkdir "$root"
dpkg-deb --extract "$permit" "$root"
dpkg-deb --extract "$python" "$root"
use_it env PATH="$root/usr/bin:$PATH"
PYTHONPATH=$root/usr/lib/python3/dist-packages python3 -c 'import permit; permit.hold' ||
  fail "import permit"
rm -rf "$root"
echo "ok  the command that comes out serves and takes a permit"
[[ ${1:-} == --chroot ]] || exit 0

# --- In a fresh Debian ---

((EUID == 0)) || skip "SKIPPED the fresh Debian: not root"
command -v debootstrap >/dev/null || skip "SKIPPED the fresh Debian: apt install debootstrap"
# shellcheck disable=SC1091
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016  # apt has the dollars
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' \
  'Component: main' | sed -n "s/^$codename //p" | head -n 1)
[[ -n $mirror ]] || skip "SKIPPED the fresh Debian: apt names no mirror of $codename"
SECONDS=0
packages 2  # the same, but for its number
debootstrap --variant=minbase "$codename" "$root" "$mirror" >"$scratch/debootstrap.log" 2>&1 || {
  tail -n 20 "$scratch/debootstrap.log"
  skip "SKIPPED the fresh Debian: debootstrap failed"
}
echo "    a fresh $codename in $SECONDS s"

# $in_debian <command...>: what it mounts goes when it ends. A program, not a function, so that its
# process is the command's.
in_debian=$scratch/in_debian
cat >"$in_debian" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount -t proc proc "\$0/proc" && exec chroot "\$0" "\$@"' "$root" \
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "\$@"
END
chmod +x "$in_debian"
apt_get() {
  "$in_debian" apt-get -qq -o Dpkg::Use-Pty=0 "$@" >"$scratch/apt.log" 2>&1 ||
    { cat "$scratch/apt.log"; fail "apt-get $*"; }
}
everything() { (cd "$root" && find etc usr var -xdev | grep -vE '^var/(lib/(apt|dpkg)|cache|log)/' |
  sort); }

mkdir "$root/packages"
cp "$scratch"/[12]/*.deb "$root/packages/"
apt_get update
# What they depend on, first, so that what is left over after them is theirs.
apt_get install -y --no-install-recommends libsqlite3-0 libssl3 libstdc++6 python3 libboost1.81-dev \
  nlohmann-json3-dev g++ pkgconf
mkdir -p -m 0700 "$root/var/lib/private"  # systemd's, for all services of this kind
everything >"$scratch/before"

mapfile -t revision < <(cd "$root" && printf '/%s\n' packages/*-1_*.deb)
apt_get install -y --no-install-recommends "${revision[@]}"
use_it "$in_debian"
"$in_debian" python3 -c 'import permit; permit.hold' || fail "import permit"
echo "ok  installs and runs"

# The unit's own command, with the configuration and the state directory that it has.
exec_start=$(sed -n 's/^ExecStart=//p' "$root/$unit/permit.service")
mkdir "$root/var/lib/private/permit"
ln -s private/permit "$root/var/lib/permit"
status=0
# shellcheck disable=SC2086  # it is words
"$in_debian" env STATE_DIRECTORY=/var/lib/permit timeout --signal=TERM 3 $exec_start --port 0 \
  >"$scratch/unit.log" 2>&1 || status=$?
((status == 124)) || { cat "$scratch/unit.log"; fail "$exec_start: exit $status"; }
[[ -s $root/var/lib/permit/permit.db ]] || fail "no database in /var/lib/permit"
echo "ok  $exec_start"

# A program that holds permits, against libpermit-dev.
awk '/^```cpp$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$root/packages/worker.cpp"
# shellcheck disable=SC2016  # expanded inside
"$in_debian" sh -c 'g++ -std=c++20 /packages/worker.cpp -o /packages/worker \
  $(pkg-config --cflags --libs permit)' || fail "the README's program"
echo "ok  the README's program builds"

echo '# edited here' >>"$root/etc/permit/server.toml"
mapfile -t revision < <(cd "$root" && printf '/%s\n' packages/*-2_*.deb)
apt_get install -y --no-install-recommends "${revision[@]}"
# shellcheck disable=SC2016  # dpkg has the dollars
[[ $("$in_debian" dpkg-query -W -f '${Version}' permit) == "$version-2" ]] || fail "no upgrade"
grep -q '# edited here' "$root/etc/permit/server.toml" || fail "the upgrade lost the configuration"
[[ -s $root/var/lib/permit/permit.db ]] || fail "the upgrade lost the data"
use_it "$in_debian"
echo "ok  upgrades, and keeps what was edited and the data"

apt_get remove -y permit libpermit-dev python3-permit
[[ ! -e $root/usr/bin/permit ]] || fail "remove left the command"
[[ -s $root/var/lib/permit/permit.db ]] || fail "remove took the data; only purge may"
grep -q '# edited here' "$root/etc/permit/server.toml" || fail "remove took the configuration"
echo "ok  removes, and keeps the configuration and the data"

apt_get purge -y permit  # the others had nothing to keep
everything >"$scratch/after"
diff "$scratch/before" "$scratch/after" >"$scratch/left" || { cat "$scratch/left"; fail "left over"; }
echo "ok  purges clean ($SECONDS s in all)"
