import tempfile
import unittest
from pathlib import Path

from compare import install, manifest

GOOD = """
[peer]
name = Tea
packages = tea, pot
build = one
    two
run = {build}/tea
environment = A=1
    B=x=y

[skynet]
styles = cup, mug:1
workers = 1
warmup = 3
parameters = leaves=10
"""


class Manifests(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tea" / "peer.ini"
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8")
            return manifest.read_manifest(path)

    def test_everything(self):
        peer = self.read(GOOD)
        self.assertEqual((peer.key, peer.system, peer.name), ("tea", "tea", "Tea"))
        self.assertEqual(peer.packages, ("tea", "pot"))
        self.assertEqual(peer.build, ("one", "two"))
        self.assertEqual(peer.environment, {"A": "1", "B": "x=y"})
        self.assertEqual(peer.warmup, 1)
        ability = peer.abilities["skynet"]
        self.assertEqual((ability.styles, ability.workers, ability.warmup), (("cup", "mug"), (1,), 3))
        self.assertEqual(ability.only, {"mug": 1})
        self.assertEqual(ability.parameters, {"leaves": "10"})

    def complaint(self, text):
        with self.assertRaises(manifest.ManifestError) as caught:
            self.read(text)
        return str(caught.exception)

    def test_what_is_wrong_is_named(self):
        self.assertIn("[peer]", self.complaint("[tea]\nstyles = a\n"))
        self.assertIn("lacks run", self.complaint("[peer]\nname = Tea\n[skynet]\nstyles = a\n"))
        self.assertIn("no workload", self.complaint("[peer]\nname = Tea\nrun = x\n"))
        self.assertIn("names no styles", self.complaint("[peer]\nname = Tea\nrun = x\n[skynet]\n"))
        self.assertIn("cmopile", self.complaint(GOOD.replace("build =", "cmopile =")))
        self.assertIn("no whole number", self.complaint(GOOD.replace("warmup = 3", "warmup = some")))
        self.assertIn("no name=value", self.complaint(GOOD.replace("A=1", "A")))
        self.assertIn("peer.ini", self.complaint("no ini at all"))

    def test_all_of_the_project_can_be_read(self):
        from compare.cases import all_cases, matrix_cases
        peers = manifest.read_all(Path(__file__).resolve().parent.parent / "peers")
        self.assertIn("go", peers)
        families = {case.family for case in all_cases("full") + matrix_cases("full")}
        for peer in peers.values():
            for name in peer.abilities:
                self.assertIn(name, families, f"{peer.key}: there is no case {name}")


class Pages(unittest.TestCase):
    def test_every_peer_has_one(self):
        for key, peer in manifest.read_all(install.PEERS).items():
            page = peer.folder / "README.md"
            self.assertTrue(page.is_file(), f"{key} lacks README.md: which choices, why, what was tried")
            self.assertTrue(page.read_text(encoding="utf-8").startswith("# "), page)


if __name__ == "__main__":
    unittest.main()
