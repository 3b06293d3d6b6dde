"""Reads lab/peers/<name>/peer.ini: what a peer is, how it is built and run, and what it can do. lab/peers/README.md
has the format with a worked example."""

import configparser
from dataclasses import dataclass, field
from pathlib import Path

KNOWN = {
    "name", "system", "summary", "packages", "programs", "files", "build", "run", "version", "flags", "warmup",
    "environment", "malloc", "notes", "shared",
}
KNOWN_WORKLOAD = {"styles", "workers", "warmup", "parameters", "server"}


class ManifestError(Exception):
    """A manifest that cannot be used; the message names the file and what is wrong with it."""


@dataclass(frozen=True)
class Ability:
    """A workload that a peer has."""

    styles: tuple
    only: dict = field(default_factory=dict)  # style: the one number of workers that it knows
    workers: tuple = ()  # empty: any number
    warmup: int | None = None  # None: the peer's
    parameters: dict = field(default_factory=dict)  # over those of the case
    server: str = ""  # the command of a server that ramie-lab's load drives; empty: the peer's program measures itself


@dataclass(frozen=True)
class Peer:
    key: str  # the folder's name
    folder: Path
    name: str
    system: str
    summary: str
    packages: tuple  # for apt-get
    programs: tuple  # that are required; if all exist, packages are not installed
    files: tuple  # likewise, by path; a pattern
    build: tuple  # shell commands, run in the folder
    run: str
    version: str
    flags: str
    shared: tuple  # folders beside it that it is built from, too
    warmup: int
    environment: dict
    malloc: bool  # allocates by malloc, so that another one can replace it
    notes: str
    abilities: dict  # workload: Ability


def lines_of(text):
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def words_of(text):
    return tuple(text.replace(",", " ").split())


def pairs_of(path, text):
    pairs = {}
    for line in lines_of(text):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise ManifestError(f"{path}: '{line}' is no name=value")
        pairs[name.strip()] = value.strip()
    return pairs


def number_of(path, text, what):
    try:
        number = int(text)
    except ValueError:
        raise ManifestError(f"{path}: {what} = {text}: is no whole number") from None
    if number < 0:
        raise ManifestError(f"{path}: {what} = {text}: is negative")
    return number


def truth_of(path, section, what):
    try:
        return section.getboolean(what, fallback=False)
    except ValueError:
        raise ManifestError(f"{path}: {what} = {section[what]}: is neither yes nor no") from None


def check_keys(path, section, known):
    unknown = set(section) - known
    if unknown:
        raise ManifestError(f"{path}: [{section.name}] has no {', '.join(sorted(unknown))}; it has "
                            f"{', '.join(sorted(known))}")


def read_ability(path, section):
    check_keys(path, section, KNOWN_WORKLOAD)
    styles = words_of(section.get("styles", ""))
    if not styles:
        raise ManifestError(f"{path}: [{section.name}] names no styles")
    only = {}
    for style in styles:
        name, colon, number = style.partition(":")
        if colon:
            only[name] = number_of(path, number, f"styles: {name}")
    return Ability(
        styles=tuple(style.partition(":")[0] for style in styles),
        only=only,
        workers=tuple(number_of(path, word, "workers") for word in words_of(section.get("workers", ""))),
        warmup=number_of(path, section["warmup"], "warmup") if "warmup" in section else None,
        parameters=pairs_of(path, section.get("parameters", "")),
        server=section.get("server", "").strip(),
    )


def read_manifest(path):
    """Throws ManifestError."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise ManifestError(f"{path}: {error}") from None
    if "peer" not in parser:
        raise ManifestError(f"{path}: there is no section [peer]")
    peer = parser["peer"]
    check_keys(path, peer, KNOWN)
    for required in ("name", "run"):
        if not peer.get(required, "").strip():
            raise ManifestError(f"{path}: [peer] lacks {required}")
    abilities = {name: read_ability(path, parser[name]) for name in parser.sections() if name != "peer"}
    if not abilities:
        raise ManifestError(f"{path}: no workload has a section")
    folder = Path(path).parent
    return Peer(
        key=folder.name,
        folder=folder,
        name=peer["name"].strip(),
        system=peer.get("system", folder.name).strip(),
        summary=peer.get("summary", "").strip(),
        packages=words_of(peer.get("packages", "")),
        programs=words_of(peer.get("programs", "")),
        files=words_of(peer.get("files", "")),
        build=lines_of(peer.get("build", "")),
        run=peer["run"].strip(),
        version=peer.get("version", "").strip(),
        flags=peer.get("flags", "").strip(),
        shared=words_of(peer.get("shared", "")),
        warmup=number_of(path, peer.get("warmup", "1"), "warmup"),
        environment=pairs_of(path, peer.get("environment", "")),
        malloc=truth_of(path, peer, "malloc"),
        notes=" ".join(lines_of(peer.get("notes", ""))),
        abilities=abilities,
    )


def read_all(folder):
    """All peers below `folder`, by key. Throws ManifestError."""
    return {path.parent.name: read_manifest(path) for path in sorted(Path(folder).glob("*/peer.ini"))}
