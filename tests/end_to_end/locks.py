#!/usr/bin/env python3
"""Many clients take, renew, look at and give back slots as fast as they can, in one life of the
server; then the whole history is checked. And the same over many lives, with leases that end
before, while and after the server is dead.

Usage: locks.py [--operations N] [--seconds S] [--connections N] [--kills N] [--seed S]
The first part ends after N operations or S seconds, whichever comes first. Ten million operations
need about a gigabyte for the history and some for the database.
"""

import argparse
import random
import sys
import time

from chaos_support import LockLoad, Locks, cpu_seconds, resident_bytes, totals
from support import Server, check, directory


def as_fast_as_it_goes(arguments, locks):
    slots = arguments.connections // 2  # a request looks at all slots of its pool: few are fast
    history = directory() / "history.txt"
    with Server(directory() / "permit.db", "--retention", "5s", permit_worker=True,
                log_level="error") as server:
        server.client().set_pool("lock", capacity=slots)
        began = time.monotonic()
        with LockLoad(server.port, history, slots=slots, connections=arguments.connections,
                      seconds=arguments.seconds, operations=arguments.operations, renewals=3,
                      read_percent=30, abandon_percent=1, lease_ms=2000) as load:
            print(load.wait(arguments.seconds + 120))
        took = time.monotonic() - began
        busy = cpu_seconds(server.process.pid)
        print(f"the server was busy for {busy:.1f} of {took:.1f} s; it has "
              f"{resident_bytes(server.process.pid) >> 20} MiB")
        check(server.stop(60) == 0, "exit code")
    print(locks.check(history, min_grants=100), flush=True)
    return locks.operations / took


def over_many_lives(arguments, locks):
    dice = random.Random(arguments.seed)
    database, history = directory() / "lives.db", directory() / "lives.txt"
    server = Server(database, permit_worker=True, log_level="error")
    server.client().set_pool("lock", capacity=12)
    try:
        with LockLoad(server.port, history, slots=12, connections=16, lease_ms=400, renewals=2,
                      abandon_percent=15, think_ms=20, patience_ms=3000) as load:
            for _ in range(arguments.kills):
                time.sleep(dice.uniform(0.1, 0.7))
                server.kill()
                time.sleep(dice.choice([0, dice.uniform(0, 0.8)]))
                server = Server(database, port=server.port, permit_worker=True, log_level="error")
            time.sleep(0.3)
            print(load.end())
        check(server.stop(60) == 0, "exit code")
    finally:
        server.kill()
    found = Locks()
    print(found.check(history, min_grants=5 * arguments.kills))
    check(not arguments.kills or found.unknown and found.expired, "the kills hit nothing")
    locks.operations += found.operations
    locks.grants += found.grants


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    print(f"SEED={arguments.seed}", flush=True)
    locks = Locks()
    a_second = as_fast_as_it_goes(arguments, locks)
    over_many_lives(arguments, locks)
    totals(locks=locks.operations, grants=locks.grants, a_second=round(a_second),
           kills=arguments.kills, violations=0)
    return 0


sys.exit(main())
