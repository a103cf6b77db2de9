#!/usr/bin/env bash
# The power fails at every sync of a server that works: the state of the last acknowledged commit is
# on the disk. Options go to permit_power_loss; by default a short run.
set -euo pipefail
if (($# == 0)); then set -- --commits 25 --variants 20 --seed "$((RANDOM))"; fi
exec "$(dirname "$PERMIT_BIN")/permit_power_loss" "$@"
