#!/usr/bin/env python3
"""What can be said of the port for vcpkg without vcpkg itself, which the test consumer.vcpkg needs."""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PORT = ROOT / "packaging" / "vcpkg" / "ramie"

# The port that brings each function that is not vcpkg's own.
BROUGHT_BY = {
    "vcpkg_cmake_configure": "vcpkg-cmake",
    "vcpkg_cmake_build": "vcpkg-cmake",
    "vcpkg_cmake_install": "vcpkg-cmake",
    "vcpkg_cmake_config_fixup": "vcpkg-cmake-config",
}
# What an overlay port may say of itself; vcpkg refuses a manifest with anything else in it.
FIELDS = {"name", "version-semver", "port-version", "description", "homepage", "license", "supports", "dependencies", "features"}


def version_of_header():
    header = (ROOT / "ramie" / "version.hpp").read_text(encoding="utf-8")
    numbers = dict(re.findall(r"^#define RAMIE_VERSION_(\w+) (\d+)$", header, re.MULTILINE))
    return ".".join(numbers[part] for part in ("MAJOR", "MINOR", "PATCH"))


class Manifest(unittest.TestCase):
    def setUp(self):
        self.manifest = json.loads((PORT / "vcpkg.json").read_text(encoding="utf-8"))

    def test_has_the_fields_of_a_port_and_no_others(self):
        self.assertEqual(set(self.manifest) - FIELDS, set())
        for field in ("name", "version-semver", "description", "license", "dependencies"):
            self.assertTrue(self.manifest.get(field), field)

    def test_has_the_name_of_its_folder(self):
        self.assertEqual(self.manifest["name"], PORT.name)
        self.assertRegex(self.manifest["name"], r"^[a-z0-9]+(-[a-z0-9]+)*$")

    def test_has_the_version_of_the_library(self):
        self.assertEqual(self.manifest["version-semver"], version_of_header())

    def test_asks_for_the_ports_whose_functions_it_calls_as_tools(self):
        called = set(re.findall(r"^(vcpkg_\w+)\(", (PORT / "portfile.cmake").read_text(encoding="utf-8"), re.MULTILINE))
        wanted = {BROUGHT_BY[name] for name in called if name in BROUGHT_BY}
        self.assertEqual({entry["name"] for entry in self.manifest["dependencies"]}, wanted)
        for entry in self.manifest["dependencies"]:
            self.assertIs(entry["host"], True, entry["name"])


class Folder(unittest.TestCase):
    def setUp(self):
        self.portfile = (PORT / "portfile.cmake").read_text(encoding="utf-8")

    def test_takes_the_sources_of_this_checkout(self):
        up = re.search(r'"\$\{CMAKE_CURRENT_LIST_DIR\}((?:/\.\.)+)" ABSOLUTE', self.portfile)
        self.assertIsNotNone(up)
        self.assertEqual((PORT / up[1].lstrip("/")).resolve(), ROOT)

    def test_names_only_options_that_there_are(self):
        known = set(re.findall(r"^option\((\w+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE))
        named = set(re.findall(r"-D(\w+)=", self.portfile))
        self.assertTrue(named)
        self.assertEqual(named - known, set())

    def test_installs_what_vcpkg_asks_of_every_package(self):
        for call in ("vcpkg_install_copyright(", "vcpkg_cmake_install(", "vcpkg_fixup_pkgconfig("):
            self.assertIn(call, self.portfile)
        # Headers and documents belong to the release alone.
        for folder in ("debug/include", "debug/share"):
            self.assertRegex(self.portfile, rf'REMOVE_RECURSE [^)]*"\$\{{CURRENT_PACKAGES_DIR\}}/{folder}"')
        for file in re.findall(r'"\$\{CMAKE_CURRENT_LIST_DIR\}/([\w.-]+)"', self.portfile):
            self.assertTrue((PORT / file).is_file(), file)

    def test_says_how_it_is_used(self):
        usage = (PORT / "usage").read_text(encoding="utf-8")
        self.assertIn("find_package(ramie CONFIG REQUIRED)", usage)
        self.assertIn("ramie::ramie", usage)


if __name__ == "__main__":
    unittest.main()
