#!/usr/bin/python3
"""Packs the wheels partita-runtime and partita: make_wheels.py VERSION RUNTIME.whl PARTITA.whl FILE...

Libraries among the files are recognised by their names. The shared libraries that they need are copied beside them, except glibc's,
those of C++ and zlib, which every Linux of the wheels' tag has. Search paths are relative, so the two packages find each other in
any environment.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

TAG = "py3-none-manylinux_2_36_x86_64"
# Libraries that the tag promises (PEP 600).
PROMISED = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|libutil|libstdc\+\+|libgcc_s|libz|ld-linux[^/]*)\.so")
# Libraries that the runtime opens when a model needs them.
OPENED = ("libdnnl.so.2", "libgomp.so.1")
SUMMARIES = {"partita-runtime": "Runs models that Partita compiled", "partita": "Divides a model over devices, compiles it, and runs or trains it"}


def fail(message):
    sys.exit("make_wheels.py: " + message)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def needed(library):
    """Paths of the shared libraries that a library needs, and theirs, without the promised ones."""
    found = []
    for line in output("ldd", library).splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if match and match.group(2) == "not":
            fail("expected all libraries that %s needs, found no %s" % (library, match.group(1)))
        if match and not PROMISED.match(match.group(1)):
            found.append(match.group(2))
    return found


def opened_path(name):
    for line in output("/usr/sbin/ldconfig", "-p").splitlines():
        words = line.split()
        if words and words[0] == name:
            return words[-1]
    return fail("expected the library %s, found none" % name)


def licence_of(library):
    """The package of a library and the path of its licence."""
    for path in (library, os.path.realpath(library)):
        found = subprocess.run(["dpkg", "-S", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        package = found.split(":")[0]
        licence = "/usr/share/doc/%s/copyright" % package
        if package and os.path.exists(licence):
            return package, licence
    return fail("expected a Debian package with a licence for %s, found none" % library)


class Wheel:
    """The files of one wheel, in a folder, until they are packed."""

    def __init__(self, stage, name, version, requires):
        self.name, self.version, self.requires = name, version, requires
        self.module = name.replace("-", "_")
        self.root = os.path.join(stage, name)
        self.info = os.path.join(self.root, "%s-%s.dist-info" % (self.module, version))
        self.lib = os.path.join(self.root, self.module, "lib")
        for folder in (self.lib, os.path.join(self.info, "licenses")):
            os.makedirs(folder)

    def add(self, path, folder=None, name=None):
        target = os.path.join(folder or os.path.join(self.root, self.module), name or os.path.basename(path))
        shutil.copyfile(os.path.realpath(path), target)
        os.chmod(target, 0o644)
        return target

    def add_library(self, path, search, name=None, strip=True):
        target = self.add(path, self.lib, name)
        if strip:
            subprocess.run(["strip", "--strip-all" if self.name == "partita" else "--strip-debug", target], check=True)
        subprocess.run(["patchelf", "--set-rpath", search, target], check=True)

    def add_needed(self, paths, search, already=()):
        for path in sorted(set(paths)):
            name = os.path.basename(path)
            if name in already or os.path.exists(os.path.join(self.lib, name)):
                continue
            self.add_library(path, search, strip=False)
            package, licence = licence_of(path)
            self.add(licence, os.path.join(self.info, "licenses"), package)

    def pack(self, path, readme, licence):
        self.add(licence, os.path.join(self.info, "licenses"), "LICENSE")
        with open(readme, encoding="utf-8") as file:
            page = file.read()
        lines = ["Metadata-Version: 2.1", "Name: " + self.name, "Version: " + self.version, "Summary: " + SUMMARIES[self.name],
                 "License: Apache-2.0", "Requires-Python: >=3.9", "Description-Content-Type: text/markdown"]
        lines += ["Requires-Dist: " + each for each in self.requires]
        self.write("METADATA", "\n".join(lines) + "\n\n" + page)
        self.write("WHEEL", "Wheel-Version: 1.0\nGenerator: make_wheels.py\nRoot-Is-Purelib: false\nTag: %s\n" % TAG)
        if self.name == "partita":
            self.write("entry_points.txt", "[console_scripts]\npartita = partita.__main__:main\n\n"
                       "[torch_dynamo_backends]\npartita = partita.torch_backend:partita_backend\n")
        record = os.path.relpath(os.path.join(self.info, "RECORD"), self.root)
        rows = []
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for where, folders, names in os.walk(self.root):
                folders.sort()
                for name in sorted(names):
                    file = os.path.join(where, name)
                    self.pack_file(archive, file, os.path.relpath(file, self.root), rows)
            entry = zipfile.ZipInfo(record)
            entry.external_attr, entry.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, "".join(rows) + record + ",,\n")

    def write(self, name, content):
        with open(os.path.join(self.info, name), "w", encoding="utf-8") as file:
            file.write(content)

    @staticmethod
    def pack_file(archive, file, name, rows):
        with open(file, "rb") as source:
            content = source.read()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))
        entry = zipfile.ZipInfo(name)  # dated 1980, so that equal files make equal wheels
        entry.external_attr, entry.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
        archive.writestr(entry, content, compresslevel=9)


def only(files, ending):
    found = [file for file in files if file.endswith(ending)]
    return found[0] if len(found) == 1 else fail("expected one file %s, found %s" % (ending, found))


def main(version, runtime_path, partita_path, *files):
    with tempfile.TemporaryDirectory() as stage:
        runtime = Wheel(stage, "partita-runtime", version, [])
        partita = Wheel(stage, "partita", version, ["partita-runtime==" + version])
        for file in files:
            if file.endswith(".py"):
                (runtime if os.path.basename(os.path.dirname(file)) == "partita_runtime" else partita).add(file)
        library, compiler = only(files, "/libpartita_runtime.so"), only(files, "/libpartita_compiler_static.so")
        runtime.add_library(library, "$ORIGIN", "libpartita_runtime.so.1")
        runtime.add_library(only(files, "/libpartita_mpi.so"), "$ORIGIN")
        opened = [opened_path(name) for name in OPENED]
        runtime.add_needed(needed(library) + opened + [path for each in opened for path in needed(each)], "$ORIGIN")
        search = "$ORIGIN:$ORIGIN/../../partita_runtime/lib"
        partita.add_library(compiler, search, "libpartita_compiler.so.1")
        partita.add_needed(needed(compiler), search, already=os.listdir(runtime.lib))
        for wheel, path in ((runtime, runtime_path), (partita, partita_path)):
            wheel.pack(path, only(files, "README.wheel.md"), only(files, "LICENSE"))


if __name__ == "__main__":
    main(*sys.argv[1:])
