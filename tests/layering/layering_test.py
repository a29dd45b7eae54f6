"""Architecture rules as tests, each with its reason.

Reads the source tree itself (found through the symbolic link that Bazel makes for WORKSPACE), so that undeclared files are
included.

test_targets_include_headers_of_direct_dependencies replaces Bazel's layering_check. That feature is off: Bazel 4 refuses the
module maps of indirect dependencies, which Clang 22 lists among a file's inclusions.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest

import build_files

ROOT = os.path.dirname(os.path.realpath("WORKSPACE"))
TOP = ("compiler", "runtime", "dialects", "frontends")

# Folder: (folders of this tree that it may include, reason).
ALLOWED = {
    "dialects/terms": ((), "the terms that dialects, core and planner share are plain data and depend on nothing"),
    "dialects/nn": (("dialects/terms",), "the model's dialect knows nothing of those who use it"),
    "dialects/exec": (("dialects/terms",), "a dialect never knows its successor, and exec needs nothing of nn's"),
    "dialects/dist": (("dialects/nn", "dialects/terms"), "the distribution knows what can be divided, and nothing of how it is done"),
    "frontends/builder": (("dialects/nn",), "what importers of graphs share builds nn and reads no files"),
    "frontends/onnx": (("dialects/nn", "dialects/dist", "frontends/builder", "runtime/base"), "an importer writes nn and reads files; ONNX says how a model is divided, too"),
    "frontends/python": ((), "the Python package calls C libraries, and has no C++"),
    "frontends/lora": (("dialects/nn", "frontends/huggingface", "runtime/base"), "adapters are added to a module, and read from files as weights are"),
    "frontends/distillation": (("dialects/nn", "runtime/base"), "a teacher is one more graph in the student's module; checkpoints know its names"),
    "frontends/pruning": (("dialects/nn", "runtime/base"), "weights are found in a module, and files are read and written"),
    "frontends/huggingface": (("dialects/nn", "frontends/builder", "runtime/base"), "an importer writes nn and reads files"),
    "frontends/stablehlo": (("dialects/nn", "dialects/dist", "frontends/builder"),
                            "an importer writes nn, and JAX says how a program is divided; MLIR's bytecode reader reads the file"),
    "frontends/torch": (("dialects/nn", "frontends/builder", "runtime/base"), "an importer writes nn and reads files"),
    "compiler/simplify": (("dialects/nn", "dialects/exec"), "simplification is a matter of the model alone, except that no collective moves to load time"),
    "compiler/core": (("dialects/terms",), "the algorithms of dividing work on plain data, without MLIR, for passes, planner and simulator alike"),
    "compiler/format": (("dialects/terms", "runtime/program"), "one place converts the compiler's terms to the artifact's and back"),
    "compiler/plan": (("compiler/core",), "a plan is a file that planners without MLIR read and write"),
    "compiler/planner": (("dialects/terms", "compiler/core", "compiler/plan"), "what a division costs is arithmetic on plain data, without MLIR"),
    "compiler/sharding": (("dialects", "compiler/core", "compiler/plan", "compiler/autodiff"),
                          "thin passes between the model and the core; marks say which stage of a pipeline a call is of"),
    "compiler/autodiff": (("dialects",), "a training step is a matter of the model alone, whatever divides it"),
    "compiler/simulator": (("compiler/core", "compiler/format", "compiler/planner/cluster", "compiler/planner/cost", "runtime/program", "runtime/base"),
                           "the program is what is simulated: how it was made, and with what values it runs, is not its concern"),
    "compiler/api": (("compiler/driver", "runtime/base"), "the C interface runs commands, as the program partita does"),
    "compiler/measure": (("compiler/core", "compiler/planner/cluster", "runtime/program", "runtime/base"),
                         "a machine is measured by programs that it runs: what compiles or runs them is the caller's"),
    "compiler/recompute": (("dialects", "compiler/autodiff", "compiler/plan", "compiler/sharding"),
                           "thin passes between a plan and what differentiation keeps"),
    "compiler/partition": (("dialects", "compiler/core", "compiler/sharding"), "thin passes between the model and the core"),
    "compiler/pipeline": (("dialects", "compiler/core", "compiler/plan", "compiler/sharding", "compiler/autodiff"),
                          "stages are marked before gradients are there, and cut when all values have shardings"),
    "compiler/kernels": (("dialects", "compiler/core"), "kernels see operations, not plans or artifacts; the planner counts what they compute, too"),
    "compiler/memory": (("dialects", "compiler/core"), "memory is planned on exec alone; core holds the limits that the planner counts with"),
    "compiler/emit": (("dialects", "compiler/format", "runtime/program", "runtime/base"), "compiler and runtime meet in the artifact only"),
    "compiler/driver": (("compiler", "dialects", "frontends", "runtime/program", "runtime/base"),
                        "compiler and runtime meet in the artifact only"),
    "compiler/tools": (("compiler/driver",), "mains hold no logic"),
    "runtime/base": ((), "files and numbers, nothing of programs"),
    "runtime/program": (("runtime/base",), "the format stands alone"),
    "runtime/device": (("runtime/base", "runtime/program", "runtime/comm"),
                       "the interface names no device; a line of the list of devices also makes the devices' communicators"),
    "runtime/cpu": (("runtime/base", "runtime/program", "runtime/device"), "a device knows the interface only"),
    "runtime/cuda": (("runtime/base", "runtime/program", "runtime/device", "runtime/comm"),
                     "a device and its network know the interfaces only"),
    "runtime/comm": (("runtime/base", "runtime/program"), "collectives move bytes and know no device"),
    "runtime/executor": (("runtime/base", "runtime/program", "runtime/device", "runtime/comm"), "the executor never names cpu or cuda"),
    "runtime/checkpoint": (("runtime/base",), "checkpoints hold logical tensors: they know neither plans nor devices"),
    "runtime/data": (("runtime/base",), "data are files and tensors: sources know neither programs nor devices"),
    "runtime/train": (("runtime/base", "runtime/data", "runtime/program"),
                      "the loop drives whatever takes steps; who runs them and how they are saved is not its concern"),
    "runtime/session": (("runtime/base", "runtime/program", "runtime/device", "runtime/cpu", "runtime/cuda", "runtime/comm", "runtime/executor",
                         "runtime/checkpoint", "runtime/train"), "a loaded model knows neither command lines nor data files"),
    "runtime/generate": (("runtime/base", "runtime/executor", "runtime/session"),
                         "texts are made of tokens by a loaded model: command lines and tokenizers are the caller's"),
    "runtime/tokenizer": (("runtime/base",), "text and tokens, nothing of models"),
    "runtime/api": (("runtime/base", "runtime/program", "runtime/comm", "runtime/executor", "runtime/data", "runtime/session", "runtime/train",
                     "runtime/generate"), "the C interface names no device"),
    "runtime/tools": (("runtime",), "the runtime knows no compiler"),
}


def sources(folder, endings=(".cc", ".h", ".td")):
    for where, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(where, name), ROOT)


def includes(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for line in file:
            match = re.match(r'\s*#?include "((?:%s)/[^"]+)"' % "|".join(TOP), line)
            if match:
                yield match.group(1)


def room(path):
    return "/".join(path.split("/")[:2])


def package(path):
    """The nearest enclosing folder of a file that has a BUILD file."""
    folder = os.path.dirname(path)
    while not os.path.exists(os.path.join(ROOT, folder, "BUILD")):
        folder = os.path.dirname(folder)
    return folder


def manual_tests():
    """Labels of the tests tagged manual, and of the long runs that fuzz_test makes."""
    for where, folders, names in os.walk(ROOT):
        folders[:] = [folder for folder in folders if not folder.startswith(("bazel-", "."))]
        if "BUILD" not in names:
            continue
        with open(os.path.join(where, "BUILD"), encoding="utf-8") as file:
            calls = [node for node in ast.walk(ast.parse(file.read())) if isinstance(node, ast.Call)]
        for call in calls:
            rule = getattr(call.func, "id", "")
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            name = getattr(given.get("name"), "value", "")
            tags = [tag.value for tag in getattr(given.get("tags"), "elts", [])]
            label = "//%s:%s" % (os.path.relpath(where, ROOT), name)
            if rule == "fuzz_test":
                yield label + "_long"
            elif rule.endswith("_test") and "manual" in tags:
                yield label


OF_TESTS = ("_test.cc", "_testing.h")

# A comparison of a text with the name of a target or a device.
COMPARES_NAME = r'(?:[=!]= |starts_with\(|rfind\(|compare\()"(?:cpu|cuda|null)\b'


class LayeringTest(unittest.TestCase):
    def folders(self):
        for top in TOP:
            for name in sorted(os.listdir(os.path.join(ROOT, top))):
                if os.path.isdir(os.path.join(ROOT, top, name)):
                    yield top + "/" + name

    def test_every_folder_has_a_rule_and_a_readme(self):
        for folder in self.folders():
            self.assertIn(folder, ALLOWED, "a new folder needs a rule here, with its reason")
            self.assertTrue(os.path.exists(os.path.join(ROOT, folder, "README.md")), folder + " has no README.md")
            self.assertTrue(any("BUILD" in names for _, _, names in os.walk(os.path.join(ROOT, folder))), folder + " has no BUILD file")

    def test_folders_include_only_what_they_may(self):
        for folder, (allowed, reason) in ALLOWED.items():
            for path in sources(folder):
                if path.endswith(OF_TESTS):
                    continue  # tests compare with everything
                for target in includes(path):
                    fine = room(target) == folder or any(target.startswith(a + "/") for a in allowed)
                    self.assertTrue(fine, "%s includes %s, but %s" % (path, target, reason))

    def test_the_graph_of_packages_has_no_cycle(self):
        edges = {}
        for top in TOP:
            for path in sources(top):
                folder = package(path)
                if not path.endswith(OF_TESTS):
                    edges.setdefault(folder, set()).update(package(t) for t in includes(path) if package(t) != folder)
        done, active = set(), []

        def visit(folder):
            self.assertNotIn(folder, active, "cycle: " + " -> ".join(active + [folder]))
            if folder in done:
                return
            active.append(folder)
            for target in sorted(edges.get(folder, ())):
                visit(target)
            active.pop()
            done.add(folder)

        for folder in sorted(edges):
            visit(folder)

    def test_names_of_targets_and_devices_are_compared_in_their_lists(self):
        for bad in ('target == "cpu"', 'target.rfind("cuda:", 0)', 'name.starts_with("cuda:sm_9")', 'device != "null"'):
            self.assertRegex(bad, COMPARES_NAME)
        for path in (p for folder in ("runtime", "compiler/driver", "compiler/simulator") for p in sources(folder, (".cc", ".h"))):
            if path.endswith(OF_TESTS):
                continue
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertNotRegex(file.read(), COMPARES_NAME, path + " compares a name: ask runtime/program/target.h, "
                                    "runtime/session/devices.h or compiler/driver/targets.h, so that a new one is one line")

    def test_terms_are_plain_data(self):
        for path in sources("dialects/terms", (".cc", ".h")):
            if os.path.basename(path) in ("symbols.h", "symbols_test.cc"):
                continue  # generated C++ calls it
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertNotRegex(file.read(), r'#include "(llvm|mlir)/', path + " is used by compiler/core, which has no MLIR")

    def test_the_phases_of_the_driver_know_none_of_its_commands(self):
        for name in os.listdir(os.path.join(ROOT, "compiler/driver")):
            if name.endswith((".cc", ".h")):
                for target in includes("compiler/driver/" + name):
                    self.assertNotRegex(target, "compiler/driver/.*/", "%s includes %s" % (name, target))

    def test_every_unit_test_is_declared(self):
        for top in TOP + ("tests",):
            for path in sources(top, ("_test.cc", "_fuzzer.cc")):
                build = os.path.join(ROOT, os.path.dirname(path), "BUILD")
                self.assertTrue(os.path.exists(build), path + " lies in a folder without BUILD file")
                with open(build, encoding="utf-8") as file:
                    text = file.read()
                name = os.path.basename(path)
                declared = '"%s"' % name in text or '"%s"' % name[:-3] in text or 'glob(["*_test.cc"])' in text
                self.assertTrue(declared, path + " is not in its BUILD file: it would never run")

    def test_plain_unit_tests_run_under_sanitizers(self):
        with open(os.path.join(ROOT, "tests/sanitize/BUILD"), encoding="utf-8") as file:
            text = file.read()
        for top in ("compiler/core", "compiler/format", "compiler/measure", "compiler/memory", "compiler/plan", "compiler/planner", "compiler/simulator", "runtime"):
            for path in sources(top, ("_test.cc",)):
                label = "//%s:%s" % (os.path.dirname(path), os.path.basename(path)[:-3])
                if not label.endswith(("kill_test", "full_disk_test")):  # these tests run another process
                    self.assertIn('"%s"' % label, text, "it needs no MLIR: PLAIN_TESTS has all such tests")

    def test_every_manual_test_is_in_the_long_suite(self):
        with open(os.path.join(ROOT, "tests/BUILD"), encoding="utf-8") as file:
            suite = file.read()
        found = 0
        for label in manual_tests():
            self.assertIn('"%s"' % label, suite, "`//...` leaves out tests that are tagged manual: add this one to //tests:long")
            found += 1
        self.assertGreater(found, 15)

    def test_every_lit_test_is_declared(self):
        for path in sources("tests", (".mlir",)):
            if path.startswith("tests/data/"):
                continue
            with open(os.path.join(ROOT, os.path.dirname(path), "BUILD"), encoding="utf-8") as file:
                self.assertIn("lit_tests(", file.read(), path + " would never run")

    def test_mains_are_short(self):
        for path in list(sources("compiler/tools", (".cc",))):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertLessEqual(len(file.readlines()), 60, path)

    def test_sources_are_formatted(self):
        paths = [p for top in TOP + ("tests",) for p in sources(top, (".cc", ".h"))]
        result = subprocess.run(["clang-format-22", "--dry-run", "-Werror"] + paths, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, "run clang-format-22 -i on:\n" + "\n".join(
            sorted({line.split(":")[0] for line in result.stderr.splitlines() if "error:" in line})))


class DependenciesTest(unittest.TestCase):
    def test_targets_include_headers_of_direct_dependencies(self):
        found = ["%s: %s includes %s" % each for each in build_files.BuildFiles(ROOT).undeclared()]
        self.assertEqual(found, [], "add the target that has the header to deps, or the header to the target's hdrs:\n" + "\n".join(found))

    def undeclared(self, files):
        """The violations in a tree of these files."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return [each[1:] for each in build_files.BuildFiles(root).undeclared()]

    # c includes a header of b, which includes one of a.
    CHAIN = {
        "a/BUILD": 'cc_library(name = "a", srcs = ["private.h"], hdrs = glob(["*.h"], exclude = ["private.h"]))\n',
        "a/a.h": "", "a/private.h": "",
        "b/BUILD": 'cc_library(name = "b", hdrs = ["b.h"], deps = ["//a"])\n',
        "b/b.h": '#include "a/a.h"\n',
        "c/BUILD": 'cc_library(name = "c", srcs = ["c.cc"], deps = ["//b"])\n',
        "c/c.cc": '#include "absl/status/status.h"\n#include "b/b.h"\n',
    }

    def test_direct_dependencies_are_enough(self):
        self.assertEqual(self.undeclared(self.CHAIN), [])

    def test_a_dependency_of_a_dependency_is_found(self):
        chain = dict(self.CHAIN, **{"c/c.cc": '#include "a/a.h"\n#include "b/b.h"\n'})
        self.assertEqual(self.undeclared(chain), [("c/c.cc", "a/a.h")])

    def test_a_private_header_is_found(self):
        chain = dict(self.CHAIN, **{"b/b.h": '#include "a/private.h"\n'})
        self.assertEqual(self.undeclared(chain), [("b/b.h", "a/private.h")])

    def test_targets_of_comprehensions_and_macros_are_read(self):
        chain = dict(self.CHAIN, **{
            "c/BUILD": 'load("//c:twice.bzl", "twice")\n'
                       '[cc_test(name = n[:-len(".cc")], srcs = [n], deps = ["//b"]) for n in glob(["**/*_test.cc"])]\n'
                       'twice(name = "m", srcs = ["m.cc"])\n',
            "c/twice.bzl": 'x = rule(attrs = {"y": attr.label()})\n'
                           'def twice(name, srcs):\n'
                           '    native.genrule(name = name + "_made", outs = [name + ".inc"])\n'
                           '    native.cc_binary(name = name, srcs = srcs + [":" + name + "_made"], deps = ["//b"])\n'
                           '    x(name = name + "_x")\n',
            "c/in/a_test.cc": '#include "a/a.h"\n',
            "c/m.cc": '#include "a/a.h"\n#include "c/m.inc"\n',
        })
        self.assertEqual(self.undeclared(chain), [("c/in/a_test.cc", "a/a.h"), ("c/m.cc", "a/a.h")])


class PrecompiledHeaderTest(unittest.TestCase):
    def test_sources_of_mlir_targets_include_it(self):
        with open(os.path.join(ROOT, ".bazelrc"), encoding="utf-8") as file:
            rules = re.search(r"^build:pch --per_file_copt=(.*)@-include-pch", file.read(), re.MULTILINE).group(1).split(",")
        files = build_files.BuildFiles(ROOT)
        found = 0
        for label, target in sorted(files.targets.items()):
            if not target.rule.startswith("cc_"):
                continue
            uses_mlir = files.reaches(label, "@llvm//")
            for source in sorted(files.sources(target)):
                if not source.endswith(".cc") or source in files.generated:
                    continue
                included = (any(re.search(rule, source) for rule in rules if rule[0] != "-")
                            and not any(re.search(rule[1:], source) for rule in rules if rule[0] == "-"))
                self.assertEqual(included, uses_mlir, "%s of %s: expected %s by build:pch in .bazelrc, as its target %s on @llvm" % (
                    source, label, "a match" if uses_mlir else "no match", "depends" if uses_mlir else "does not depend"))
                found += included
        self.assertGreater(found, 300)


class RuntimeTest(unittest.TestCase):
    def test_the_runtime_links_no_compiler(self):
        with open("tests/layering/runtime_deps", encoding="utf-8") as file:
            for label in file.read().split():
                for forbidden in ("@llvm//", "//compiler", "//dialects", "//frontends"):
                    self.assertFalse(label.startswith(forbidden), "the runtime runs where no compiler is installed, but depends on " + label)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
