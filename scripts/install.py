"""Install orthobench with pip, and say in one sentence what went wrong.

    python scripts/install.py                   as `python -m pip install -c constraints.txt -e .`
    python scripts/install.py -e ".[tune]"      with words of your own for pip

Only the standard library is used, and any Python from 3.6 on can read this file.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
CAUSES = (  # in this order: a network that fails makes pip say that there is no such package
    (
        r"No space left on device|Errno 28|disk quota exceeded",
        "the disk is full ({free}): torch takes about 6 GiB with CUDA and 1 GiB without (--extra-index-url "
        "https://download.pytorch.org/whl/cpu); set TMPDIR= to a larger disk, and add --no-cache-dir",
    ),
    (
        r"ProxyError|Cannot connect to proxy|407 Proxy|Tunnel connection failed",
        "pip cannot get through {proxy}: set HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, or unset it if none is needed",
    ),
    (
        r"SSLError|CERTIFICATE_VERIFY_FAILED",
        "the certificate of the package index is not trusted, as behind a company's proxy: ask for its certificate, "
        "and set PIP_CERT=FILE",
    ),
    (
        r"NewConnectionError|Name or service not known|Temporary failure in name resolution|ReadTimeout|ConnectTimeout"
        r"|Connection (?:refused|reset|timed out)|Network is unreachable",
        "the package index cannot be reached: look at the network, or name the proxy in HTTPS_PROXY",
    ),
    (r"requires a different Python", "{old}"),
    (r"externally-managed-environment", "this Python belongs to the system: {venv}"),
    (
        r"No matching distribution found for torch\b",
        "there is no wheel of torch for {here}: take a 64-bit CPython, 3.11 to 3.13, on Linux with glibc, macOS on "
        "Apple silicon, or Windows",
    ),
    (
        r"[Nn]o matching distribution found for (?P<name>\S+)",
        "there is no {name} for {here}, or constraints.txt pins a version that the index does not have",
    ),
    (
        r"(?:gcc|g\+\+|clang|cc)\S*(?:: command)?:? (?:not found|No such file)|unable to execute '\S*(?:gcc|cc|clang)"
        r"|command '\S*(?:gcc|cc|clang)\S*' failed|Microsoft Visual C\+\+ \S+ or greater is required|Unknown compiler",
        "a package has no wheel for {here} and is built here, which needs a C compiler: install gcc (apt install "
        "build-essential), Xcode's (xcode-select --install), or Microsoft's Build Tools",
    ),
    (r"Permission denied|Access is denied", "pip may not write into this Python: {venv}"),
)


def old(version):  # type: (tuple[int, ...]) -> str
    """The sentence about a Python that is too old."""
    found = ".".join(str(part) for part in version[:2])
    return f"orthobench needs Python 3.11 or newer, and this is {found} ({sys.executable}): install a newer one"


def cause(output):  # type: (str) -> str | None
    """What pip's output says went wrong, in one sentence; None where it is nothing that is known here."""
    for pattern, sentence in CAUSES:
        found = re.search(pattern, output)
        if found:
            return sentence.format(**facts(), **found.groupdict())
    return None


def facts():  # type: () -> dict[str, str]
    """What the sentences say of this machine."""
    places = dict.fromkeys((sys.prefix, tempfile.gettempdir()))
    free = ", ".join(f"{shutil.disk_usage(place).free / 2**30:.1f} GiB free at {place}" for place in places)
    address = next((a for s, a in sorted(urllib.request.getproxies().items()) if s in ("https", "http", "all")), "")
    host = urllib.parse.urlsplit(address if "://" in address else "//" + address).hostname
    return {
        "free": free,
        "proxy": f"the proxy {host}" if host else "a proxy",
        "here": f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        "old": old(sys.version_info),
        "venv": "make an environment, python -m venv .venv, and use its python",
    }


def main(words):  # type: (list[str]) -> int
    """Run pip, showing what it prints; returns 0, 2 for a Python that is too old, or pip's code."""
    if sys.version_info[:2] < OLDEST:
        sys.stderr.write(f"install: {old(sys.version_info)}.\n")
        return 2
    command = [sys.executable, "-m", "pip", "install", *(words or ["-c", "constraints.txt", "-e", "."])]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout or ():
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line)
    code = process.wait()
    if code:
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
        sys.stderr.write(f"install: {cause(''.join(lines)) or f'pip ended with code {code}: {last}'}.\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
