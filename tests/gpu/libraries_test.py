"""The libraries that `pack` packs complete NVIDIA's: what those need is packed, or NVIDIA's own."""

import glob
import os
import subprocess
import sys
import unittest

RUN = os.path.abspath("runtime/tools/partita-run")
CUDA = "/usr/local/cuda/lib64"


def needed_by(path):
    lines = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line}


class LibrariesTest(unittest.TestCase):
    def setUp(self):
        listed = subprocess.run(["tests/gpu/libraries", RUN], capture_output=True, text=True, check=True).stdout.split()
        self.packed = {os.path.basename(path) for path in listed}
        for path in listed:
            self.assertTrue(os.path.isabs(path) and os.path.exists(path), path)

    def test_the_c_library_is_whole(self):
        # The driver's library, which is not here, needs these.
        self.assertLessEqual({"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}, self.packed)

    @unittest.skipUnless(glob.glob(CUDA + "/libcudnn.so.9"), "no CUDA: what NVIDIA's libraries need is not compared with what is packed")
    def test_nvidias_libraries_find_theirs(self):
        own = {os.path.basename(path) for path in glob.glob(CUDA + "/*.so*")}
        for pattern in ("libcublasLt.so.*", "libcudnn*.so.9", "libnccl.so.2"):
            for path in glob.glob(os.path.join(CUDA, pattern)):
                self.assertLessEqual(needed_by(path), self.packed | own, path)


if __name__ == "__main__":
    sys.exit(unittest.main())
