"""Permits for Python programs: one file, standard library only, Python 3.9 or newer.

A pool has a few slots: GPUs, lab rigs, jobs that may run only once at a time. Hold one while you work:

    import permit

    with permit.hold("gpu-pool") as p:
        os.environ.update(p.gpu_env())          # before torch is imported
        for epoch in range(10):
            train(epoch)
            p.check()                           # raises LeaseLost if the slot is not ours any more
            if p.stop_requested:                # the hold is about to end: save, and leave
                save()
                break

Whoever finds all slots taken waits in line. Leaving the block, however that happens, gives the slot
back; leaving the line, too. The same as a decorator and for asyncio:

    @permit.needs("gpu-pool", slots=2)          # two slots, or none
    def train(job, *, permit): ...

    async with permit.ahold("gpu-pool") as p: ...

Options of hold, ahold and needs. Durations are "1h30m", "45s", "250ms" or a datetime.timedelta.

    slots=1           how many, all or none
    lease="2m"        how long the slot outlives a silent program; renewed every third of it
    wait=None         how long to wait in line: None for ever, 0 not at all; then AcquireTimeout
    max_hold=None     a limit on the whole hold, which renewals do not move
    priority=         1 goes first, 5 last; 3 if not given
    reason=, labels=, holder=    for those who ask who has the slot
    on_lost="raise"   what happens when the slot is lost under way: "raise" makes check() and the end
                      of the block raise LeaseLost (ahold: the block is canceled at once); "warn" only
                      logs; "terminate" sends SIGTERM to the process group, a little before the slot
                      can be given to somebody else, for a main thread that cannot look
    warn_before=      how long before the end stop_requested becomes true; a quarter of the lease
    address=, namespace=, api_key=    else PERMIT_ADDRESS, PERMIT_NAMESPACE, PERMIT_API_KEY (or
                      PERMIT_API_KEY_FILE), else http://127.0.0.1:7376, default, none

For an https:// address, PERMIT_TLS_CA is a file with the authorities to trust, if not those of the system;
PERMIT_TLS_CERT and PERMIT_TLS_KEY are your certificate and its key, for a server that asks for one; and
PERMIT_TLS_SERVER_NAME is whom the server's certificate must be for, if not the address's host.

A hold survives a restart of the server: renewals are tried again until the deadline that was last
confirmed, and only then is the slot lost. Renewals come from a daemon thread, so an extension module that
keeps the interpreter's lock for longer than the lease starves them; `permit run -- python3 train.py`
renews from outside and has no such weakness. It is also the way for torchrun: `permit run -p gpu-pool
-n 2 --gpu -- torchrun --nproc_per_node 2 train.py`. In a fork, the parent keeps the hold.

An activity is a step of a workflow, which a workflow in C++ can call by name:

    @permit.activity
    def train_epoch(model, epoch, slot):
        for step in range(permit.last_heartbeat() or 0, 1000):  # where the attempt before was
            permit.heartbeat(step)              # "alive, and here"; raises Canceled when told to stop
        return f"{model}-{epoch}.ckpt"

    permit.Worker("training", activities=[train_epoch]).run()   # SIGTERM drains it

Arguments, results and heartbeats are JSON. Exceptions become failures, which are retried if the workflow
says so; NonRetryable is not. A heartbeat is sent at the latest after 5 s or 0.8 of its timeout, and
renews the permit under which the activity runs.

Every error is a permit.Error with a `code`, the server's word for it.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextvars
import datetime
import functools
import getpass
import http.client
import inspect
import json
import logging
import os
import re
import signal
import socket
import ssl
import stat
import sys
import threading
import time
import traceback
import urllib.parse
import uuid

__version__ = "0.1.0"
_log = logging.getLogger("permit")


# --- Errors ---


class Error(Exception):
    """What cannot be done, in a sentence; `code` is for programs."""

    code = "ERROR"

    def __init__(self, message, code=None):
        super().__init__(message)
        if code:
            self.code = code


class InvalidArgument(Error, ValueError):  # the call makes no sense as it was written
    code = "INVALID_ARGUMENT"


class Unreachable(Error):  # no answer; if `sent`, the request may have been carried out
    code = "SERVER_UNREACHABLE"
    sent = False


class AcquireTimeout(Error):  # no slot came free in time
    code = "WAIT_TIMED_OUT"


class PoolNotFound(Error):
    code = "POOL_NOT_FOUND"


class RemovedFromLine(Error):  # by an operator
    code = "REMOVED_FROM_LINE"


class LeaseLost(Error):  # the slot is not held any more, and somebody else may have it
    code = "LEASE_LOST"


class NotAllowed(Error):  # the API key is missing, wrong, or not for this
    code = "UNAUTHENTICATED"


class Canceled(Error):  # out of heartbeat(): save what matters and let it pass
    code = "CANCELED"


class NonRetryable(Exception):
    """Raised by an activity to fail for good: another attempt would not help."""

    def __init__(self, message, *details, type=None):
        super().__init__(message)
        self.details = details
        self.type = type or self.__class__.__name__


class _Busy(Error):  # the server is there but cannot now; later it may
    pass


_ERRORS = {kind.code: kind for kind in (AcquireTimeout, PoolNotFound, RemovedFromLine, LeaseLost)}


def _refusal(status, answer):
    """The error that an answer of the server is."""
    if not isinstance(answer, dict):
        answer = {}
    details = answer.get("details") or [{}]
    code = details[0].get("reason") or f"HTTP_{status}"
    message = answer.get("message") or f"the server answered with status {status}"
    if code == "POOL_FULL":
        return AcquireTimeout(message, code)
    if status in (401, 403):
        how = "; give a key with PERMIT_API_KEY or PERMIT_API_KEY_FILE" if status == 401 else ""
        return NotAllowed(message + how, code)
    if status in (429, 503):
        return _Busy(message, code)
    error = _ERRORS.get(code, Error)(message, code)
    error.status = status
    return error


# --- Time ---

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _seconds(value, name):
    """A duration option in seconds."""
    if isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str) and re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", value):
        parts = re.findall(r"([\d.]+)(ms|s|m|h|d)", value)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    else:
        raise InvalidArgument(f"{name}={value!r} is not a duration with a unit; say 45s or 45m")
    if seconds < 0.001:
        raise InvalidArgument(f"{name}={value!r} is too short")
    return seconds


def _now():
    """Seconds on a clock that nobody sets, and that goes on while the machine is suspended."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _time_of(text):
    """The server's RFC 3339 as a datetime."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    moment = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S")
    microseconds = int((fraction + "000000")[:6])
    return moment.replace(microsecond=microseconds, tzinfo=datetime.timezone.utc)


def _pauses(longest):
    """Between tries, in seconds: 0.1, then doubled up to the longest."""
    pause = 0.1
    while True:
        yield min(pause, longest)
        pause *= 2


# --- The server ---


def _why(error):
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class _Server:
    """Where the server is and how to talk to it."""

    def __init__(self, address=None, namespace=None, api_key=None):
        self.origin = "as given" if address else "from PERMIT_ADDRESS"
        address = address or os.environ.get("PERMIT_ADDRESS")
        if not address:
            address, self.origin = "http://127.0.0.1:7376", "the default; set PERMIT_ADDRESS"
        url = urllib.parse.urlsplit(address if "//" in address else "http://" + address)
        try:
            port = url.port
        except ValueError:
            port = -1
        if url.scheme not in ("http", "https") or not url.hostname or port == -1 or url.path.strip("/"):
            raise InvalidArgument(f"{address!r} is not an address; write http://host:port, or https://")
        self.tls = url.scheme == "https"
        self.host = url.hostname
        self.port = port or (443 if self.tls else 7376)
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.url = f"{url.scheme}://{host}:{self.port}"
        self.namespace = namespace or os.environ.get("PERMIT_NAMESPACE") or "default"
        self.path = "/api/v1/namespaces/" + urllib.parse.quote(self.namespace, safe="")
        self.headers = {"Content-Type": "application/json"}
        key = api_key or self._key_from_environment()
        if key:
            key = key.strip()  # secrets often end in a newline
            if not key.isascii() or not key.isprintable():
                raise InvalidArgument("the API key is not one line of plain characters")
            self.headers["Authorization"] = "Bearer " + key

    def secure(self, sock):
        """The socket, through TLS. Files are read anew each time: they may have been renewed."""
        ca, cert, key, name = (os.environ.get("PERMIT_TLS_" + what) or None
                               for what in ("CA", "CERT", "KEY", "SERVER_NAME"))
        try:
            context = ssl.create_default_context(cafile=ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if cert or key:
                context.load_cert_chain(cert or "", key, lambda: "")  # does not ask for a passphrase
        except OSError as error:
            raise Unreachable(f"cannot use PERMIT_TLS_CA ({ca}), PERMIT_TLS_CERT ({cert}) and PERMIT_TLS_KEY "
                              f"({key}): {_why(error)}", "TLS_FILE_INVALID") from None
        return context.wrap_socket(sock, server_hostname=name or self.host)

    def tls_problem(self, error):
        """What TLS has not let happen, or None."""
        reason = getattr(error, "reason", None) or ""
        if isinstance(error, ssl.SSLCertVerificationError):
            why = error.verify_message
            if error.verify_code in (62, 64):  # X509_V_ERR_HOSTNAME_MISMATCH, …_IP_ADDRESS_MISMATCH
                return Unreachable(f"the certificate of {self.url} is for somebody else: {why}",
                                   "TLS_NAME_MISMATCH")
            return Unreachable(f"the certificate of {self.url} is not trusted ({why}); say whom to trust "
                               "with PERMIT_TLS_CA", "TLS_UNTRUSTED")
        if re.search("ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE)", reason):
            return Unreachable(f"{self.url} wants another certificate of you ({reason}); say which with "
                               "PERMIT_TLS_CERT and PERMIT_TLS_KEY", "TLS_CERTIFICATE_REQUIRED")
        if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
            return Unreachable(f"{self.url} speaks no TLS; perhaps its address begins with http://",
                               "TLS_NOT_SPOKEN")
        if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, TimeoutError)):
            return Unreachable(f"no TLS with {self.url}: {_why(error)}", "TLS_FAILED")
        return None

    @staticmethod
    def _key_from_environment():
        key = os.environ.get("PERMIT_API_KEY")
        file = os.environ.get("PERMIT_API_KEY_FILE")
        if key or not file:
            return key
        try:
            with open(file, encoding="utf-8") as text:
                mode = os.fstat(text.fileno()).st_mode
                if stat.S_ISREG(mode) and mode & 0o077:
                    raise InvalidArgument(f"others may read the API key in {file}; make it yours alone: chmod 600 {file}")
                return text.read().strip()
        except OSError as error:
            raise InvalidArgument(f"cannot read PERMIT_API_KEY_FILE: {error}") from None


class _Connection:
    """One keep-alive connection. For one thread at a time; but cut() may come from any."""

    _IDLE_MAX = 20  # the server closes what is idle for longer

    def __init__(self, server):
        self.server = server
        self._http = None
        self._used = 0.0
        self._is_cut = False

    def close(self):
        if self._http:
            self._http.close()
        self._http = None

    def cut(self):
        """Fails the request that is under way, and all later ones."""
        self._is_cut = True
        connection = self._http
        sock = connection and connection.sock
        if sock:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # TLS's own would go on without TLS
            except OSError:
                pass  # it was not connected any more

    def post(self, path, body, timeout=10.0):
        """The answer, or the error that the server answers with, or Unreachable. All that is asked here
        may be asked twice: it is then done once."""
        reused = self._http is not None and _now() - self._used < self._IDLE_MAX
        if not reused:
            self.close()
        text = json.dumps(body).encode()
        try:
            status, answer = self._exchange(path, text, timeout)
        except Unreachable:
            if not reused or self._is_cut:
                raise
            status, answer = self._exchange(path, text, timeout)  # it was closed while idle
        if status >= 300:
            raise _refusal(status, answer)
        return answer

    def rpc(self, name, timeout=10.0, **message):
        message["namespace"] = self.server.namespace
        path = "/temporal.api.workflowservice.v1.WorkflowService/" + name
        return self.post(path, message, timeout)

    def _exchange(self, path, text, timeout):
        sent, response = False, None
        try:
            if self._http is None:
                server = self.server
                self._http = http.client.HTTPConnection(server.host, server.port, timeout=min(timeout, 5))
                self._http.connect()
                if server.tls:
                    self._http.sock = server.secure(self._http.sock)
            self._http.sock.settimeout(timeout)
            if self._is_cut:  # cut() sees the socket, or else this sees the flag
                raise ConnectionAbortedError("given up")
            sent = True
            self._http.request("POST", path, text, self.server.headers)
            response = self._http.getresponse()
            answer = json.loads(response.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            problem = self.server.tls_problem(error)
            if problem:
                problem.sent = sent and problem.code == "TLS_FAILED"
                raise problem from None
            unreachable = Unreachable(
                f"cannot reach {self.server.url} ({_why(error)}; {self.server.origin}). "
                "Is it running? Try: permit server start-dev"
            )
            unreachable.sent = sent
            unreachable.page = response and response.status  # of an answer that is not JSON
            raise unreachable from None
        except BaseException:  # Ctrl-C: there may be half an answer in it
            self.close()
            raise
        if response.will_close:
            self.close()
        self._used = _now()
        return response.status, answer


# --- Holding ---

_stop = threading.Event()  # set by the signals of stop_on_signals()


def stop_on_signals(*signals):
    """From now on SIGTERM (or these instead) sets stop_requested of every hold, so that the work can be
    saved. A second one does what it did before. Call it from the main thread."""

    def stop(number, _):
        if _stop.is_set():
            signal.signal(number, before[number])
            os.kill(os.getpid(), number)
        _stop.set()

    before = {number: signal.signal(number, stop) for number in signals or (signal.SIGTERM,)}


def gpu_env(*devices, kind="cuda"):
    """The environment in which these GPUs, by index or UUID, are all that there are: cuda:0 and so on.
    `kind` is "cuda" (PyTorch for ROCm heeds it, too) or "rocm"; never both, as each of the two would
    hide devices from the other."""
    text = ",".join(map(str, devices))
    if kind == "cuda":
        return {"CUDA_VISIBLE_DEVICES": text, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if kind == "rocm":
        return {"ROCR_VISIBLE_DEVICES": text}
    raise InvalidArgument(f"kind={kind!r} is not known; say \"cuda\" or \"rocm\"")


def _default_holder():
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a container's user without a name
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    return f"{user}@{socket.gethostname()} {script} {os.getpid()}"


class _Options:
    """What is asked for, checked."""

    def __init__(self, pool, *, slots=1, lease="2m", wait=None, max_hold=None, priority=None, reason=None,
                 labels=None, holder=None, on_lost="raise", warn_before=None, address=None,
                 namespace=None, api_key=None):
        if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
            raise InvalidArgument(f"slots={slots!r} must be a number of slots, 1 or more")
        if on_lost not in ("raise", "warn", "terminate"):
            raise InvalidArgument(f"on_lost={on_lost!r} must be \"raise\", \"warn\" or \"terminate\"")
        self.pool = pool
        self.lease = _seconds(lease, "lease")
        self.max_hold = None if max_hold is None else _seconds(max_hold, "max_hold")
        self.on_lost = on_lost
        if priority is not None and priority not in range(1, 6):
            raise InvalidArgument("priority must be 1 to 5")
        self.wait_text = wait
        if wait is None:
            self.wait = None
        elif wait == datetime.timedelta(0) or (type(wait) is int and wait == 0):
            self.wait = 0.0
        else:
            self.wait = _seconds(wait, "wait")
        self.warn_before = self.lease / 4
        if warn_before is not None:
            self.warn_before = _seconds(warn_before, "warn_before")
            if self.max_hold is not None and self.warn_before >= self.max_hold:
                raise InvalidArgument("warn_before must be shorter than max_hold")
        self.server = (address, namespace, api_key)
        self.request = {
            "count": slots, "lease": f"{self.lease:.3f}s", "holder": holder, "priority": priority,
            "reason": reason, "labels": labels,
            "maxHold": None if self.max_hold is None else f"{self.max_hold:.3f}s",
        }


class _Line:
    """The way to a permit: one request, asked again until it is granted, refused or given up."""

    _POLL = 55.0
    _PATIENCE = 60.0  # for a server that is away, once it has been seen

    def __init__(self, options):
        server = _Server(*options.server)
        self._options = options
        self._connection = _Connection(server)
        self._path = f"{server.path}/pools/{urllib.parse.quote(options.pool, safe='')}/acquire"
        request = {"holder": _default_holder(), "requestId": str(uuid.uuid4())}
        request.update((key, value) for key, value in options.request.items() if value is not None)
        self._request = request
        self._abandoned = threading.Event()
        self._asked = False

    def acquire(self):
        """The permit. Whatever is raised instead, no slot is held and no place in line is kept."""
        try:
            permit = self._wait()
            if self._abandoned.is_set():
                permit.release()
                raise Canceled("given up while waiting in line")
            return permit
        except BaseException as error:  # also Ctrl-C
            refused = isinstance(error, Error) and not isinstance(error, (Unreachable, _Busy))
            if self._asked and not refused:
                self._leave()
            raise
        finally:
            self._connection.close()

    def abandon(self):
        """From another thread: makes acquire() raise, soon."""
        self._abandoned.set()
        self._connection.cut()

    def _ask(self, wait):
        began = _now()
        request = dict(self._request, wait=f"{wait:.3f}s")
        before, self._asked = self._asked, True
        try:
            return began, self._connection.post(self._path, request, wait + 10)
        except Unreachable as error:
            self._asked = before or error.sent
            raise

    def _wait(self):
        options = self._options
        give_up = None if options.wait is None else _now() + options.wait
        patience = None
        pauses = _pauses(2)
        poll = 0.2 if options.wait != 0 else 0.0  # a short one first, to be able to say that it waits
        while True:
            left = self._POLL if give_up is None else max(give_up - _now(), 0.0)
            if 0 < left < 0.001:
                left = 0.0
            try:
                began, answer = self._ask(min(poll, left))
            except AcquireTimeout as error:
                raise self._timed_out(error) from None
            except (Unreachable, _Busy) as error:
                if not self._asked:
                    raise  # it was never there
                patience = patience or _now() + self._PATIENCE
                if left == 0 or _now() > patience or self._abandoned.wait(next(pauses)):
                    raise
                continue
            if answer["state"] == "granted":
                return Permit(options, self._connection.server, answer, began)
            _log.info("waiting for %s: position %s", options.pool, answer["ticket"].get("position"))
            poll, patience, pauses = self._POLL, _now() + self._PATIENCE, _pauses(2)

    def _timed_out(self, error):
        pool = self._options.pool
        if self._options.wait == 0:
            return AcquireTimeout(f"no slot of {pool} is free; see who holds them: permit who {pool}",
                                  error.code)
        return AcquireTimeout(f"no slot of {pool} came free within {self._options.wait_text}; "
                              f"wait longer, or see who holds them: permit who {pool}")

    def _leave(self):
        """The same request once more, now unwilling to wait: that takes it out of the line. If it has
        been granted meanwhile, it is given back."""
        self._connection.close()
        self._connection = _Connection(self._connection.server)
        try:
            began, answer = self._ask(0)
            Permit(self._options, self._connection.server, answer, began).release()
        except Error:
            pass  # it has left; or it will in 15 s, when nobody has asked for it


class Permit:
    """What a `with permit.hold(…) as p` block is given. From any thread.

    p.slot is the first of p.slots, and p.id and p.run_id say which hold of it this is. p.fence grows with
    every grant, and is the highest of several slots': send it along with what you write."""

    def __init__(self, options, server, answer, asked):
        self._options = options
        self._connection = _Connection(server)
        self._path = server.path + "/permits/"
        self._token = answer["token"]
        self._grants = sorted(answer["slots"], key=lambda grant: (len(grant["slot"]), grant["slot"]))
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a signal's handler may release, too
        self._over = threading.Event()  # released or lost
        self._is_given_back = False
        self._why_lost = None
        self._when_lost = None
        granted = _now()
        self._end = None if options.max_hold is None else granted + options.max_hold
        self._confirmed = self._limited(granted + options.lease)
        first = self._grants[0]
        self.pool = options.pool
        self.id = first["id"]
        self.run_id = first["runId"]
        self.slot = first["slot"]
        self.slots = tuple(grant["slot"] for grant in self._grants)
        self.fence = int(answer["fence"])
        self._deadline = _time_of(answer["deadline"])
        # "terminate" must come before somebody else can have the slot.
        self._margin = min(10.0, options.lease / 12) if options.on_lost == "terminate" else 0.0
        # An answer that took long may have been on its way for long.
        pause = options.lease / 3 if granted - asked < 1 else 0.0
        threading.Thread(target=self._keep, args=(pause,), name="permit renewal", daemon=True).start()

    @property
    def deadline(self):
        """When the slot is lost unless it is renewed, as the server says. Moves with each renewal."""
        return self._deadline

    def remaining(self):
        """Seconds for which the slot is certainly ours, as far as is known here."""
        return 0.0 if self._over.is_set() else max(self._confirmed - _now(), 0.0)

    @property
    def lost(self):
        return self._why_lost is not None or (not self._over.is_set() and _now() >= self._confirmed)

    @property
    def stop_requested(self):
        """Whether to save and leave: the hold is lost or about to end, or a signal has asked."""
        warn = self._options.warn_before
        if self._end is not None and _now() >= self._end - warn:
            return True
        if self._over.is_set():
            return self.lost or _stop.is_set()
        # Less than a third of a lease is left only if renewals fail.
        return _stop.is_set() or self.remaining() < min(warn, self._options.lease / 3)

    def check(self):
        """Raises LeaseLost if the slot is not ours any more. Costs nothing."""
        if self.lost:
            raise self._why_lost or self._loss()

    def gpu_env(self, kind="cuda"):
        """The environment that shows this process its GPUs only. See gpu_env() of the module."""
        devices = []
        for grant in self._grants:
            device = grant.get("device") or (grant["slot"] if grant["slot"].isdigit() else None)
            if device is None:
                raise Error(f"slot {grant['slot']!r} of {self.pool} has no device; map it with: "
                            f"permit pool set {self.pool} --device {grant['slot']}=GPU-…",
                            "DEVICE_UNKNOWN")
            devices.append(device)
        return gpu_env(*devices, kind=kind)

    def release(self):
        """Gives the slots back; done by the block's end. If the server is away, they come free by
        themselves at the deadline."""
        with self._lock:
            if self._is_given_back or os.getpid() != self._pid:
                return
            again = self._over.is_set() and self._why_lost is None  # a release was interrupted
            if self.lost and self._why_lost is None:  # and the renewing thread has not seen it yet
                self._why_lost = self._loss()
            self._over.set()
        try:
            self._give_back(unsure=again)
        except BaseException:  # Ctrl-C in the middle of it; nobody else would give them back
            self._give_back(unsure=True)
            raise

    def _give_back(self, unsure):
        connection = _Connection(self._connection.server)
        for grant in self._grants:
            self._release_one(connection, grant, unsure)
        self._is_given_back = True
        connection.close()

    def _release_one(self, connection, grant, unsure):
        pauses = _pauses(2)
        give_up = min(self._confirmed, _now() + 30)
        while True:
            try:
                connection.post(f"{self._path}{grant['id']}/release", {"token": self._token}, 5)
                return
            except LeaseLost:
                if not unsure and self._why_lost is None:
                    self._why_lost = self._loss()
                return
            except Error as error:
                unsure = unsure or getattr(error, "sent", False)
                pause = next(pauses)
                if _now() + pause >= give_up:
                    if self._why_lost is None:
                        _log.warning("%s was not released (%s); it comes free by itself at %s",
                                     grant["id"], error, self._deadline)
                    return
                time.sleep(pause)

    # --- Renewal, on a thread of its own ---

    def _limited(self, moment):
        return moment if self._end is None else min(moment, self._end)

    def _keep(self, pause):
        lease, failed = self._options.lease, False
        pauses = _pauses(lease / 12)
        while True:
            last = self._confirmed - self._margin
            if self._over.wait(max(min(pause, last - _now()), 0.0)):
                return
            if _now() >= last:
                return self._lose()
            try:
                self._renew()
                pause, pauses, failed = lease / 3, _pauses(lease / 12), False
            except LeaseLost:
                return self._lose()
            except Exception as error:  # whatever it is, this goes on
                if not failed:
                    _log.warning("%s was not renewed: %s; trying on until %s", self.id, error,
                                 self._deadline)
                pause, failed = next(pauses), True

    def _renew(self):
        began = _now()
        deadlines = []
        for grant in self._grants:
            left = self._confirmed - self._margin - _now()
            answer = self._connection.post(f"{self._path}{grant['id']}/renew", {"token": self._token},
                                           max(min(10.0, left), 0.1))
            deadlines.append(_time_of(answer["deadline"]))
        self._confirmed = self._limited(began + self._options.lease)
        self._deadline = min(deadlines)

    def _loss(self):
        if self._end is not None and _now() >= self._end - self._margin:
            return LeaseLost(f"the time of {self.id} is over: it was held for its max_hold")
        if _now() >= self._confirmed - self._margin:
            return LeaseLost(f"{self.id} is lost: its lease could not be renewed in time; send p.fence "
                             "along with what you write, as the slot may be somebody else's")
        return LeaseLost(f"{self.id} is lost: it was taken away before its time; see by whom: "
                         f"permit describe {self.id}")

    def _lose(self):
        with self._lock:
            if self._over.is_set():
                return
            self._why_lost = self._loss()
            self._over.set()
        how = self._options.on_lost
        _log.warning("%s%s", self._why_lost, "; terminating" if how == "terminate" else "")
        if self._when_lost:
            self._when_lost()
        if how == "terminate" and os.getpid() == self._pid:
            os.killpg(os.getpgrp(), signal.SIGTERM)

    def _leave_block(self, kind):
        """After the release: a block that went well, but not all the time with a permit, did not."""
        if kind is None and self._options.on_lost != "warn":
            if self._why_lost:
                raise self._why_lost


class hold:
    """with permit.hold("gpu-pool") as p: …   See the module's text for the options."""

    def __init__(self, pool, **options):
        self._options = _Options(pool, **options)
        self._permit = None

    def __enter__(self):
        if self._permit:
            raise InvalidArgument("this hold has been used; make a new one with permit.hold()")
        self._permit = _Line(self._options).acquire()
        return self._permit

    def __exit__(self, kind, error, trace):
        try:
            self._permit.release()
        except KeyboardInterrupt:  # before it had begun
            self._permit.release()
            raise
        self._permit._leave_block(kind)


class ahold:
    """async with permit.ahold("gpu-pool") as p: …   Canceled while it waits, it leaves the line."""

    def __init__(self, pool, **options):
        self._options = _Options(pool, **options)
        self._permit = None
        self._inside = False
        self._interrupted = False

    async def __aenter__(self):
        if self._permit:
            raise InvalidArgument("this hold has been used; make a new one with permit.ahold()")
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        line = _Line(self._options)
        acquiring = _in_thread(line.acquire)
        try:
            self._permit = await asyncio.shield(acquiring)
        except asyncio.CancelledError:
            line.abandon()
            await _settled(acquiring)
            if acquiring.exception() is None:
                await _settled(_in_thread(acquiring.result().release))
            raise
        self._inside = True
        if self._options.on_lost == "raise":
            self._permit._when_lost = lambda: loop.call_soon_threadsafe(self._interrupt)
            if self._permit.lost:
                self._interrupt()
        return self._permit

    def _interrupt(self):
        if self._inside and not self._interrupted:
            self._interrupted = True
            self._task.cancel()

    async def __aexit__(self, kind, error, trace):
        self._inside = False
        canceled = kind
        try:
            await _settled(_in_thread(self._permit.release))
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            canceled = canceled or asyncio.CancelledError
        if self._interrupted:
            others = self._task.uncancel() if hasattr(self._task, "uncancel") else 0
            if canceled is not None and issubclass(canceled, asyncio.CancelledError):
                if others:
                    raise asyncio.CancelledError
                raise self._permit._why_lost from None
        self._permit._leave_block(kind)


def _in_thread(function):
    """A future of what it returns. Not the loop's executor: its few threads may all be waiting in line,
    while a release waits for one of them."""
    future = concurrent.futures.Future()

    def body():
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=body, name="permit", daemon=True).start()
    return asyncio.wrap_future(future)


async def _settled(future):
    """Waits until it is done, and puts off being canceled until then."""
    canceled = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            canceled = error
    if canceled:
        raise canceled


def needs(pool, **options):
    """@permit.needs("gpu-pool", slots=2): each call holds a permit, which it is given as `permit`."""
    _Options(pool, **options)  # says at once what is wrong with them

    def decorate(function):
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def call_held(*args, **kwargs):
                async with ahold(pool, **options) as permit:
                    return await function(*args, permit=permit, **kwargs)
        else:
            @functools.wraps(function)
            def call_held(*args, **kwargs):
                with hold(pool, **options) as permit:
                    return function(*args, permit=permit, **kwargs)
        return call_held

    return decorate


# --- Activities ---


def _bytes64(data):
    return base64.b64encode(data).decode()


def _payloads(*values):
    encoding = {"encoding": _bytes64(b"json/plain")}
    return {"payloads": [
        {"metadata": encoding, "data": _bytes64(json.dumps(value).encode())} for value in values
    ]}


def _values(payloads):
    values = []
    for payload in (payloads or {}).get("payloads", []):
        encoding = base64.b64decode(payload.get("metadata", {}).get("encoding", "")).decode()
        data = base64.b64decode(payload.get("data", ""))
        if encoding == "binary/null":
            values.append(None)
        elif encoding == "binary/plain":
            values.append(data)
        elif encoding in ("json/plain", ""):
            values.append(json.loads(data))
        else:
            raise Error(f"cannot read a payload with the encoding {encoding!r}", "ENCODING_UNKNOWN")
    return values


def _failure(error, depth=0):
    """An exception as the workflow sees it."""
    trace = traceback.format_exception(type(error), error, error.__traceback__, chain=False)
    info = {"type": type(error).__name__}
    if isinstance(error, NonRetryable):
        info = {"type": error.type, "nonRetryable": True}
        if error.details:
            info["details"] = _payloads(*error.details)
    failure = {
        "message": (str(error) or type(error).__name__)[:8000], "source": "PermitPython",
        "stackTrace": "".join(trace)[-8000:], "applicationFailureInfo": info,
    }
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and depth < 4:
        failure["cause"] = _failure(cause, depth + 1)
    return failure


class _Activity:
    """A running activity. Its fields belong to `lock` of the heartbeats."""

    def __init__(self, task):
        execution = task.get("workflowExecution", {})
        self.token = task["taskToken"]
        self.name = task["activityType"]["name"]
        self.id = task.get("activityId", "")
        self.workflow_id = execution.get("workflowId", "")
        self.run_id = execution.get("runId", "")
        self.attempt = task.get("attempt", 1)
        self.idempotency_key = f"{self.run_id}:{self.id}"  # the same for every attempt
        self.arguments = task.get("input")
        self.details = task.get("heartbeatDetails")
        self.last_details = self.details
        timeout = float(task.get("heartbeatTimeout", "0s").rstrip("s"))
        self.pause = min(max(0.8 * timeout, 0.01), 5.0) if timeout > 0 else 5.0
        self.due = 0.0
        self.has_news = False
        self.is_sending = False
        self.cancel_requested = False  # the server says so
        self.worker_stops = False


class _Heartbeats:
    """Sends the heartbeats of what runs here: each at most once in its pause, always the latest."""

    def __init__(self, server, identity):
        self._connection = _Connection(server)
        self._identity = identity
        self._changed = threading.Condition()
        self._running = []
        self._stopping = False
        self._thread = threading.Thread(target=self._send_all, name="permit heartbeats", daemon=True)
        self._thread.start()

    def add(self, activity):
        with self._changed:
            self._running.append(activity)

    def record(self, activity, details):
        with self._changed:
            if details:
                activity.details = details
            activity.has_news = True
            self._changed.notify_all()

    def remove(self, activity):
        """The details that were not sent, if any."""
        with self._changed:
            self._changed.wait_for(lambda: not activity.is_sending)
            self._running.remove(activity)
            return activity.details if activity.has_news else None

    def stop_all(self):
        with self._changed:
            for activity in self._running:
                activity.worker_stops = True

    def close(self):
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def _send_all(self):
        with self._changed:
            while not self._stopping:
                news = [activity for activity in self._running if activity.has_news]
                first = min(news, key=lambda activity: activity.due, default=None)
                pause = None if first is None else first.due - _now()
                if pause is None or pause > 0:
                    self._changed.wait(pause)
                    continue
                first.has_news, first.is_sending = False, True
                first.due = _now() + first.pause
                message = {"taskToken": first.token, "identity": self._identity}
                if first.details:
                    message["details"] = first.details
                self._changed.release()
                try:
                    stop = self._send(message)
                finally:
                    self._changed.acquire()
                first.is_sending = False
                first.cancel_requested = first.cancel_requested or stop
                self._changed.notify_all()

    def _send(self, message):
        try:
            answer = self._connection.rpc("RecordActivityTaskHeartbeat", **message)
            return bool(answer.get("cancelRequested"))
        except Error as error:
            return getattr(error, "status", None) == 404  # timed out, or its workflow is gone


class _Pulse:
    """Tells the server of the worker itself: every 10 s, and when its status changes. A server that does
    not know the call is not asked again."""

    def __init__(self, server, identity, queue, slots, build_id):
        self.key = uuid.uuid4().hex
        self._connection = _Connection(server)
        self._lock = threading.Lock()
        self._slots = slots
        self._counts = {"used": 0, "processed": 0, "failed": 0}
        self._about = {
            "workerInstanceKey": self.key, "workerIdentity": identity, "taskQueue": queue,
            "hostInfo": {"hostName": socket.gethostname(), "processId": str(os.getpid())},
            "deploymentVersion": {"buildId": build_id or ""},
            "sdkName": "permit-python", "sdkVersion": __version__,
        }
        self._is_known = True
        self._status = None
        self._sent = None  # when the last one arrived
        self._due = 0.0

    def count(self, **changes):
        with self._lock:
            for name, change in changes.items():
                self._counts[name] += change

    def send(self, status):
        """If it is time, or the status is a new one."""
        now = _now()
        if not self._is_known or (status == self._status and now < self._due):
            return
        wall = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._status = status
        self._about.setdefault("startTime", wall)
        with self._lock:
            counts = dict(self._counts)
        free = self._slots - counts["used"] if status == "RUNNING" else 0
        heartbeat = dict(
            self._about, status="WORKER_STATUS_" + status, heartbeatTime=wall,
            elapsedSinceLastHeartbeat=f"{now - self._sent:.3f}s" if self._sent else "0s",
            activityTaskSlotsInfo={
                "currentAvailableSlots": free, "currentUsedSlots": counts["used"],
                "totalProcessedTasks": counts["processed"], "totalFailedTasks": counts["failed"],
            })
        try:
            self._connection.rpc("RecordWorkerHeartbeat", 5, workerHeartbeat=[heartbeat])
            self._sent, self._due = now, now + 10
        except Error as error:
            status = getattr(error, "status", None) or getattr(error, "page", None)
            self._is_known = status not in (404, 501)
            self._due = now + 1


_current = contextvars.ContextVar("permit_activity", default=None)
_workers = []  # those that run in this process


def this_activity():
    """The running activity: its name, id, workflow_id, run_id, attempt and idempotency_key. None outside
    of one, as in a notebook that tries the function out."""
    running = _current.get()
    if running is None:
        if _workers and threading.current_thread() is not threading.main_thread():
            raise Error("no activity runs on this thread; start it with "
                        "threading.Thread(target=contextvars.copy_context().run, args=(function,))",
                        "NO_ACTIVITY")
        return None
    return running[0]


def heartbeat(*details):
    """Says that the activity is alive and how far it has come; the next attempt finds the details. Cheap:
    what comes too often is not sent. Raises Canceled once the activity is to stop."""
    activity = this_activity()
    if activity is None:
        return
    worker = _current.get()[1]
    worker._heartbeats.record(activity, _payloads(*details) if details else None)
    if cancelled():
        raise Canceled("the activity was told to stop")


def last_heartbeat():
    """What the attempt before said last: one value, a tuple of several, or None."""
    activity = this_activity()
    values = _values(activity.last_details) if activity else []
    return (values[0] if len(values) == 1 else tuple(values)) if values else None


def cancelled():
    """Whether the activity is to stop. Known by its heartbeats only."""
    activity = this_activity()
    return bool(activity) and (activity.cancel_requested or activity.worker_stops)


def activity(function=None, *, name=None):
    """Marks a function as an activity, by its own name or another. It can still be called as before."""
    if function is None:
        return functools.partial(activity, name=name)
    if inspect.iscoroutinefunction(function):
        raise InvalidArgument(f"{function.__name__} is async; an activity is an ordinary function")
    function.permit_activity = name or function.__name__
    return function


class Worker:
    """Runs the activities of a task queue, `concurrency` at a time, each on a thread. All share the
    environment, and so CUDA_VISIBLE_DEVICES: what needs its own starts a process with gpu_env()."""

    def __init__(self, queue, activities, concurrency=1, drain="30s", identity=None, address=None,
                 namespace=None, api_key=None, build_id=None):
        self._queue = queue
        self._activities = {
            getattr(function, "permit_activity", function.__name__): function for function in activities
        }
        if not self._activities:
            raise InvalidArgument("a worker without activities has nothing to do")
        self._concurrency = concurrency
        self._drain = _seconds(drain, "drain")
        self._identity = identity or f"{os.getpid()}@{socket.gethostname()}"
        self._server = _Server(address, namespace, api_key)
        self._heartbeats = None
        self._pulse = _Pulse(self._server, self._identity, queue, concurrency, build_id)
        self._stopping = threading.Event()

    def run(self):
        """Until stop(), SIGTERM or SIGINT: then takes no new tasks, and returns when those that run have
        ended. What still runs after `drain` is told to stop. A second signal ends the process."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, self._on_signal)
        self._heartbeats = _Heartbeats(self._server, self._identity)
        _workers.append(self)
        pollers = [
            threading.Thread(target=self._poll, name=f"permit activities {i}", daemon=True)
            for i in range(self._concurrency)
        ]
        try:
            for poller in pollers:
                poller.start()
            self._pulse.send("RUNNING")
            while not self._stopping.wait(1):  # in short waits, so that signals are seen everywhere
                self._pulse.send("RUNNING")
            self._drain_all(pollers)
            self._pulse.send("SHUTDOWN")
        finally:
            self._stopping.set()
            _workers.remove(self)
            self._heartbeats.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self):
        """Makes run() drain and return. From any thread."""
        self._stopping.set()

    def _on_signal(self, number, _):
        if self._stopping.is_set():
            os._exit(128 + number)  # what ran here will be tried again elsewhere
        print("permit worker: stopping: no new tasks, waiting for those that run; again to stop at once",
              file=sys.stderr, flush=True)
        self._stopping.set()

    def _drain_all(self, pollers):
        connection = _Connection(self._server)
        end = _now() + self._drain
        while any(poller.is_alive() for poller in pollers):
            self._pulse.send("SHUTTING_DOWN")
            try:  # the server sends our parked polls away
                connection.rpc("ShutdownWorker", identity=self._identity,
                               workerInstanceKey=self._pulse.key)
            except Error:
                pass  # it is away, and knows of no polls any more
            if _now() > end:
                self._heartbeats.stop_all()
            for poller in pollers:
                poller.join(0.1 / len(pollers))

    def _poll(self):
        connection = _Connection(self._server)
        pauses = _pauses(5)
        queue = {"name": self._queue}
        while not self._stopping.is_set():
            try:
                task = connection.rpc("PollActivityTaskQueue", 75, taskQueue=queue,
                                      identity=self._identity)
                pauses = _pauses(5)
            except Error as error:
                pause = next(pauses)
                if pause >= 1:
                    _log.warning("cannot poll %s: %s; trying again", self._queue, error)
                self._stopping.wait(pause)
                continue
            if task.get("taskToken"):
                self._run(connection, _Activity(task))

    def _run(self, connection, running):
        self._heartbeats.add(running)
        self._pulse.count(used=1)
        _current.set((running, self))
        try:
            rpc, answer = self._call(running)
        finally:
            _current.set(None)
            unsent = self._heartbeats.remove(running)
        if rpc == "RespondActivityTaskFailed" and unsent:
            answer["lastHeartbeatDetails"] = unsent
        refused = self._answer(connection, running, rpc, answer)
        self._pulse.count(used=-1, processed=1, failed=int(rpc == "RespondActivityTaskFailed"))
        if refused and rpc == "RespondActivityTaskCompleted":  # too large, say, and it will stay so
            failure = _failure(NonRetryable(f"the result was refused: {refused}", type="ResultRefused"))
            self._answer(connection, running, "RespondActivityTaskFailed", {"failure": failure})

    def _call(self, running):
        """The RPC with which to answer, and its message."""
        try:
            function = self._activities.get(running.name)
            if function is None:
                raise Error(f"this worker has no activity {running.name!r}; it has: "
                            + ", ".join(sorted(self._activities)), "ActivityNotRegistered")
            result = function(*_values(running.arguments))
            return "RespondActivityTaskCompleted", {} if result is None else {"result": _payloads(result)}
        except BaseException as error:  # also SystemExit: it ends the activity, not the worker
            if isinstance(error, Canceled) and running.cancel_requested:
                return "RespondActivityTaskCanceled", {}
            return "RespondActivityTaskFailed", {"failure": _failure(error)}

    def _answer(self, connection, running, rpc, answer):
        """Tried again while the server is away: a token is good for one answer only. Returns its words if
        the server refuses this answer for what it is."""
        pauses = _pauses(5)
        for attempt in range(10):
            try:
                connection.rpc(rpc, taskToken=running.token, identity=self._identity, **answer)
                return None
            except (Unreachable, _Busy) as error:
                _log.warning("an answer of %s was not taken: %s", running.name, error)
                if attempt < 9:
                    time.sleep(next(pauses))
            except Error as error:
                if getattr(error, "status", None) != 404:  # 404: timed out, or its workflow is gone
                    _log.warning("an answer of %s was not taken: %s", running.name, error)
                    return str(error)
                return None
        return None
