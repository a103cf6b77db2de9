#!/usr/bin/env python3
"""The RPCs of permit.api.v1.PermitService answer what the routes under /api/v1 answer."""

import json

from support import Refused, Server, check, directory, run

SERVICE = "/permit.api.v1.PermitService/"


def call(client, name, **message):
    return client.ask("POST", SERVICE + name, {"namespace": "default"} | message)


def reason_of(client, name, **message):
    try:
        call(client, name, **message)
    except Refused as refused:
        return refused.reason
    raise AssertionError(f"{name} {message} was not refused")


def the_same_by_both_roads():
    with Server(directory() / "permit.db") as server:
        client = server.client()
        call(client, "SetPool", pool="gpu", capacity=1)
        grant = client.acquire("gpu", "a", holder="a", lease="60s")["slots"][0]
        waiting = client.acquire("gpu", "b", holder="b", wait="0.01s")["ticket"]["id"]

        pool = client.pool("gpu")
        check(call(client, "DescribePool", pool="gpu") == pool, pool)
        check(call(client, "ListPools") == client.get("/pools"), "ListPools")
        check(pool["grants"] == 1 and pool["held"] == 1 and not pool.get("outcomes"), pool)
        waiters = client.get("/pools/gpu/waiters")
        check(waiters["waiters"][0]["state"] == "in_line", waiters)
        check(call(client, "ListWaiters", pool="gpu") == waiters, waiters)
        why = call(client, "ExplainWaiter", id=waiting)
        check(why["reason"] == "slots_held", why)
        check(why["blockedBy"][0]["id"] == grant["id"], why)
        check("age" in why["blockedBy"][0] and "leaseLeft" in why["blockedBy"][0], why)
        check(set(client.get(f"/waiters/{waiting}/why")) == set(why), why)

        call(client, "RemoveWaiter", id=waiting)
        check(not client.get("/pools/gpu/waiters").get("waiters"), "RemoveWaiter")
        check(call(client, "DrainPool", pool="gpu")["drained"], "DrainPool")
        check(not call(client, "UndrainPool", pool="gpu").get("drained"), "UndrainPool")
        held = client.permit(grant["id"])
        check(call(client, "DescribePermit", id=grant["id"]) == held, held)

        ended = call(client, "ForceReleasePermit", id=grant["id"], fence=grant["fence"])
        check(ended["outcome"] == "force_released" and ended["possibleOverlap"], ended)
        ledger = client.get("/permits", pool="gpu", state="closed")
        check(call(client, "ListPermits", pool="gpu", state="closed") == ledger, ledger)
        check(ledger["permits"][0]["possibleOverlap"], ledger)
        pool = client.pool("gpu")
        expected = [{"outcome": "force_released", "cause": "operator", "holds": 1}]
        check(pool["grants"] == 1 and pool["outcomes"] == expected, pool)


def a_holder_has_rpcs_too():
    with Server(directory() / "holder.db") as server:
        client = server.client()
        call(client, "SetPool", pool="gpu", capacity=1)
        ask = {"pool": "gpu", "requestId": "a", "holder": "a", "lease": "60s"}
        granted = call(client, "AcquirePermit", **ask)
        check(granted == call(client, "AcquirePermit", **ask), "the same grant again")
        body = {"namespace": "default", "pool": "gpu", "requestId": "b", "wait": "0.01s"}
        status, _, _ = client.raw("POST", SERVICE + "AcquirePermit", json.dumps(body))
        check(status == 200, f"a place in line is an answer like any other: {status}")
        call(client, "RemoveWaiter", id=call(client, "ListWaiters", pool="gpu")["waiters"][0]["id"])
        check(reason_of(client, "AcquirePermit", pool="gpu", requestId="c", wait="0s") == "POOL_FULL",
              "full")
        check(reason_of(client, "DeletePool", pool="gpu") == "POOL_IN_USE", "in use")
        mine = {"id": granted["slots"][0]["id"], "token": granted["token"]}
        renewed = call(client, "RenewPermit", **mine)["deadline"]
        check(renewed > granted["deadline"], (renewed, granted))
        check(call(client, "ReleasePermit", **mine)["outcome"] == "released", "ReleasePermit")
        check(reason_of(client, "RenewPermit", **mine) == "LEASE_LOST", "renewed after the end")
        check(reason_of(client, "ReleasePermit", **mine) == "LEASE_LOST", "released twice")
        call(client, "DeletePool", pool="gpu")
        check(reason_of(client, "DescribePool", pool="gpu") == "POOL_NOT_FOUND", "DeletePool")


def refusals_are_the_same():
    with Server(directory() / "refusals.db") as server:
        client = server.client()
        check(reason_of(client, "DescribePool", pool="gpu") == "POOL_NOT_FOUND", "no pool")
        check(reason_of(client, "ListPermits", state="half") == "PARAMETER_INVALID", "state")
        check(reason_of(client, "ExplainWaiter", id=7) == "WAITER_NOT_FOUND", "no waiter")
        check(reason_of(client, "Nothing") == "ROUTE_NOT_FOUND", "no call")
        check(reason_of(client, "ListPools", namespace="other") == "NAMESPACE_NOT_FOUND", "list")
        for name in ("DescribePool", "SetPool", "ListPermits", "DrainPool", "ListWaiters"):
            found = reason_of(client, name, namespace="other", pool="gpu")
            check(found == "NAMESPACE_NOT_FOUND", (name, found))


run(the_same_by_both_roads, a_holder_has_rpcs_too, refusals_are_the_same)
