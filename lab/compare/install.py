"""./run peers [NAME...]: installs what each peer needs and builds it; says why if it cannot.

Its findings are in build/peers/<name>/state.json, the output of the tools in build.log beside it.
"""

import argparse
import glob
import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from compare import manifest
from compare.progress import readable_time

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / "lab" / "peers"
BUILD = ROOT / "build" / "peers"
BUILD_TIMEOUT_S = 1200
NEED = 'note() { printf "./run: %s\\n" "$*" >&2; }; source scripts/packages.sh; need "$@"'


def expanded(text, peer):
    return text.replace("{build}", str(BUILD / peer.key)).replace("{source}", str(peer.folder.resolve()))


def lacking(peer):
    """What is required and missing."""
    programs = [program for program in peer.programs if not shutil.which(program)]
    files = [pattern for pattern in peer.files if not glob.glob(pattern)]
    return programs + files


def has_packages(packages):
    for package in packages:
        asked = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True,
                               check=False)
        if asked.stdout != "installed":
            return False
    return True


def provide(peer):
    """Installs its packages if needed; returns why that failed, or nothing."""
    named = bool(peer.programs or peer.files)
    if named and not lacking(peer):
        return ""
    if peer.packages and not (shutil.which("dpkg-query") and has_packages(peer.packages)):
        done = subprocess.run(["bash", "-c", NEED, "need", *peer.packages], cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return f"the packages could not be installed: {', '.join(peer.packages)}"
    missing = lacking(peer)
    return f"not here: {', '.join(missing)}" if missing else ""


def digest(peer):
    """Of the sources, what they need and how they are built: a change causes a new build. The peer's page and the rest of its manifest are none
    of it."""
    sums = hashlib.sha256(repr((peer.packages, peer.programs, peer.files, peer.build, peer.version)).encode())
    for folder in (peer.folder, *(peer.folder.parent / name for name in peer.shared)):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in ("README.md", "peer.ini"):
                sums.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return sums.hexdigest()[:16]


def first_line(command, peer):
    if not command:
        return ""
    done = subprocess.run(expanded(command, peer), shell=True, cwd=peer.folder, capture_output=True, text=True, check=False,
                          timeout=60)
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[0] if lines else ""


def build(peer, log_path):
    """Returns why it failed, or nothing."""
    with open(log_path, "w", encoding="utf-8") as log:
        for command in peer.build:
            log.write(f"$ {command}\n")
            log.flush()
            try:
                done = subprocess.run(expanded(command, peer), shell=True, cwd=peer.folder, stdout=log, stderr=log,
                                      stdin=subprocess.DEVNULL, check=False, timeout=BUILD_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                return f"'{command}' took longer than {BUILD_TIMEOUT_S} s"
            if done.returncode != 0:
                return f"'{command}' failed, see {log_path.relative_to(ROOT)}"
    return ""


def read_state(peer):
    """{} if it was never built."""
    try:
        return json.loads((BUILD / peer.key / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def is_ready(peer):
    state = read_state(peer)
    return bool(state.get("ok")) and state.get("sources") == digest(peer)


def make_ready(peer, again=False):
    """Installs and builds one; returns its state."""
    if is_ready(peer) and not again:
        return read_state(peer)
    folder = BUILD / peer.key
    folder.mkdir(parents=True, exist_ok=True)
    state = {"ok": False, "reason": provide(peer), "sources": digest(peer)}
    if not state["reason"]:
        start = time.monotonic()
        state["reason"] = build(peer, folder / "build.log")
        state["build_seconds"] = round(time.monotonic() - start, 1)
    if not state["reason"]:
        state["ok"] = True
        state["version"] = first_line(peer.version, peer)
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    return state


def choose(peers, names):
    """Throws ManifestError for an unknown name."""
    for name in names:
        if name not in peers:
            raise manifest.ManifestError(f"there is no peer '{name}'; there are {', '.join(peers)}")
    return [peers[name] for name in names] if names else list(peers.values())


def main():
    parser = argparse.ArgumentParser(prog="./run peers", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a folder of lab/peers; all if none is named")
    parser.add_argument("--again", action="store_true", help="build even what is built already")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    options = parser.parse_args()
    try:
        chosen = choose(manifest.read_all(PEERS), options.names)
    except manifest.ManifestError as error:
        print(f"./run peers: {error}", file=sys.stderr)
        return 2
    bad = 0
    for peer in chosen:
        if options.list:
            state = read_state(peer)
        else:
            print(f"{peer.key} ...", file=sys.stderr, flush=True)
            state = make_ready(peer, options.again)
        if state.get("ok"):
            took = f" ({readable_time(state['build_seconds'])})" if state.get("build_seconds", 0) > 1 else ""
            print(f"{peer.key:<18} ready    {state.get('version') or peer.name}{took}")
        else:
            bad += 1
            print(f"{peer.key:<18} missing  {state.get('reason') or 'not built yet'}")
    # An unavailable peer is no failure, unless it was asked for by name.
    return 1 if bad and options.names and not options.list else 0


if __name__ == "__main__":
    sys.exit(main())
