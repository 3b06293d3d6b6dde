"""Conan 2 recipe, for the checkout that it stands in: conan create packaging/conan -s compiler.cppstd=20"""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir


class Ramie(ConanFile):
    name = "ramie"
    description = "Stackful fibers, channels and actors on one scheduler"
    license = "BSL-1.0"
    topics = ("fibers", "channels", "actors", "concurrency")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    implements = ["auto_shared_fpic"]

    def _project(self):
        return Path(self.recipe_folder).parents[1]

    def set_version(self):
        header = (self._project() / "ramie" / "version.hpp").read_text(encoding="utf-8")
        self.version = ".".join(re.findall(r"^#define RAMIE_VERSION_\w+ (\d+)$", header, re.MULTILINE))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "CHANGELOG.md", "cmake/*", "ramie/*", "tools/*"):
            copy(self, pattern, src=self._project(), dst=self.export_sources_folder, excludes="*.test.cpp")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("ramie runs on Linux, on x86-64 and aarch64")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "LAB", "EXAMPLES"):
            toolchain.cache_variables[f"RAMIE_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=Path(self.package_folder) / "licenses")
        CMake(self).install()
        # gdb looks for what belongs to a shared library by the place of that, and packages are moved.
        rmdir(self, Path(self.package_folder) / "share" / "gdb")

    def package_info(self):
        # The package brings its own CMake files, as every other way to install it does.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/ramie"]
        self.cpp_info.libs = ["ramie"]
        self.cpp_info.system_libs = ["pthread"]
