"""Authorities and certificates, made with the openssl command, and servers that use them."""

import json
import pathlib
import shutil
import ssl
import subprocess

from support import Client, Server, check, directory, skip

EC = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]


def openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=20)
    check(done.returncode == 0, f"openssl {words}: {done.stderr}")
    return done.stdout


def need_openssl():
    if not shutil.which("openssl"):
        skip("openssl is missing: scripts/setup --test")


class Certificate:
    """A certificate and its key, as files."""

    def __init__(self, name):
        self.directory = directory() / "certificates"
        self.directory.mkdir(exist_ok=True)
        self.name = name
        self.certificate = self.directory / f"{name}.crt"
        self.key = self.directory / f"{name}.key"

    def copy_to(self, certificate, key):
        """In the place of others, as a renewal would."""
        shutil.copy(self.certificate, certificate)
        shutil.copy(self.key, key)


class Authority(Certificate):
    def __init__(self, name):
        super().__init__(name)
        openssl("req", "-x509", "-newkey", *EC, "-nodes", "-days", 30, "-subj", f"/CN={name}",
                "-keyout", self.key, "-out", self.certificate)

    def issue(self, name, names="DNS:localhost,DNS:permit.test,IP:127.0.0.1", days=30):
        made = Certificate(name)
        request = made.directory / f"{name}.csr"
        extensions = made.directory / f"{name}.cnf"
        extensions.write_text(f"subjectAltName={names}\n")
        openssl("req", "-newkey", *EC, "-nodes", "-subj", f"/CN={name}", "-keyout", made.key,
                "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
                "-CAcreateserial", "-days", days, "-extfile", extensions, "-out", made.certificate)
        return made


def arguments(own, client_ca=None):
    """Of `permit server start…`."""
    words = ["--tls-cert", str(own.certificate), "--tls-key", str(own.key)]
    return words + (["--tls-client-ca", str(client_ca.certificate)] if client_ca else [])


def context(authority, own=None):
    """A client's that trusts the authority."""
    made = ssl.create_default_context(cafile=str(authority.certificate))
    if own:
        made.load_cert_chain(own.certificate, own.key)
    return made


class TlsServer(Server):
    def __init__(self, authority, own, *more, client_ca=None, client=None, **options):
        self.context = context(authority, client)
        self.authority = authority
        super().__init__(None, *arguments(own, client_ca), *more, **options)
        self.address = f"https://127.0.0.1:{self.port}"

    def client(self):
        return Client(self.port, tls=self.context)

    def events(self, name):
        """The log's lines of this event."""
        lines = [json.loads(line) for line in self.log if line.startswith("{")]
        return [line for line in lines if line["event"] == name]


def served_serial(port, authority):
    """The serial number of the certificate that a new connection is shown."""
    pem = ssl.get_server_certificate(("127.0.0.1", port), ca_certs=str(authority.certificate))
    file = pathlib.Path(directory()) / "shown.crt"
    file.write_text(pem)
    return openssl("x509", "-in", file, "-noout", "-serial").strip()
