"""Each check of check.py finds its violation, and compile_commands.py writes commands that work outside of Bazel."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import compile_commands  # pylint: disable=wrong-import-position
import licences  # pylint: disable=wrong-import-position
import prose  # pylint: disable=wrong-import-position


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_in_tree(self, *command):
        environment = dict(os.environ, BUILD_WORKSPACE_DIRECTORY=self.folder.name, GIT_CONFIG_GLOBAL=os.devnull)
        done = subprocess.run(command, cwd=self.folder.name, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def commit(self):
        for command in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a")):
            code, output = self.run_in_tree("git", *command)
            self.assertEqual(code, 0, output)


class ProseTest(Tree):
    def habits(self, path, text):
        return [place.split("\n")[0] for place in prose.places(path, text)]

    def test_fragments(self):
        self.assertEqual(self.habits("a.cc", "// What a rank keeps.\n"),
                         ["a.cc:1: opens as a fragment: start with the subject, then a verb"])
        self.assertEqual(self.habits("a.cc", "// A rank keeps\n// what it needs.\n// Which rank is it?\n"), [])
        # The second line goes on; after a full stop or code, a sentence starts.
        self.assertEqual(len(self.habits("a.py", "# Ranks keep\n# As much.\n# As much.\nx = 1\n# Of x.\n")), 2)
        self.assertEqual(self.habits("a.cc", "int What;  // Of a rank.\n"), [])

    def test_words(self):
        self.assertEqual(self.habits("A.md", "# Title\n\n```\nanyhow\n```\n- It waits, but anyhow.\n"),
                         ["A.md:6: 'anyhow': say in any case, or leave it out"])

    def test_clauses(self):
        line = "// Sums parameters, gradients, states, activations, inputs, outputs and the rest of memory, in bytes per device.\n"
        self.assertEqual(self.habits("a.h", line), ["a.h:1: six clauses or more: split the sentence"])
        self.assertEqual(self.habits("a.h", "// a, b, c, d, e, f, g\n"), [])

    def test_reports_only_new_lines(self):
        script = os.path.join(HERE, "prose.py")
        self.write("a.h", "// What a rank keeps.\n")
        self.commit()
        self.assertEqual(self.run_in_tree(script), (1, "a.h:1: opens as a fragment: start with the subject, then a verb\n"
                                                       "    What a rank keeps.\n1 places in 1 files\n"))
        self.write("a.h", "\n// What a rank keeps.\n")
        self.assertEqual(self.run_in_tree(script, "--since", "HEAD", "a.h")[0], 0)
        self.write("a.h", "// What a rank keeps.\n// Of a rank.\n")
        code, output = self.run_in_tree(script, "--since", "HEAD", "a.h")
        self.assertEqual((code, output.split("\n")[1]), (1, "    Of a rank."))


class LicencesTest(Tree):
    def violations(self, packages="liba-dev\n", rows="| liba-*, libb (with a) | MIT |\n", data="| `x/` | a book | public domain |\n"):
        self.write("third_party/packages.txt", "# Packages.\n" + packages)
        self.write("third_party/README.md", "# T\n\n| package | licence |\n|---|---|\n%s\n| other | table |\n" % rows)
        self.write("tests/data/README.md", "| folder | source | licence |\n|---|---|---|\n" + data)
        self.write("tests/data/x/a.txt", "")
        return licences.violations(self.folder.name)

    def test_complete(self):
        self.assertEqual(self.violations(), [])

    def test_package_without_row(self):
        self.assertEqual(self.violations(packages="liba-dev\nlibc-dev\n"),
                         ["third_party/README.md: expected a row for 'libc-dev' in the first table, with licence; found none"])

    def test_empty_licence(self):
        self.assertEqual(self.violations(rows="| liba-dev | |\n"),
                         ["third_party/README.md: expected a licence in the row of 'liba-dev', found an empty cell"])

    def test_data_without_row(self):
        self.assertEqual(self.violations(data="| `y/` | a | b |\n"),
                         ["tests/data/README.md: expected a row for 'x' in the first table, with source and licence; found none"])


class CheckTest(Tree):
    def check(self, *arguments):
        return self.run_in_tree(os.path.join(HERE, "check.py"), *arguments)

    def setUp(self):
        super().setUp()
        for name in ("prose.py", "licences.py"):
            with open(os.path.join(HERE, name), encoding="utf-8") as file:
                self.write("third_party/" + name, file.read())
            os.chmod(os.path.join(self.folder.name, "third_party", name), 0o755)
        self.write("third_party/packages.txt", "")
        self.write("third_party/README.md", "")
        self.write("tests/data/README.md", "")
        self.write("tests/layering/pages_test.py", "")
        self.write("compiler/a.cc", "int  old;\n// What was here.\n")
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.commit()

    def test_fast_looks_at_changed_files(self):
        code, output = self.check("--fast")
        self.assertEqual((code, output.count(" ok "), output.count("FAILED")), (0, 4, 0), output)
        self.write("compiler/b.cc", "int  wrong;\n// Of b.\n")
        code, output = self.check("--fast")
        self.assertEqual(code, 1)
        self.assertRegex(output, r"format +FAILED.*\n +run clang-format-22 -i compiler/b.cc\n")
        self.assertRegex(output, r"prose +FAILED.*\n +compiler/b.cc:2: opens as a fragment")

    def test_all_looks_at_every_format_and_runs_tidy(self):
        self.write("third_party/tidy.sh", "#!/bin/bash\necho \"a.cc: error: 'b.h.inc' file not found\"\nexit 1\n")
        os.chmod(os.path.join(self.folder.name, "third_party/tidy.sh"), 0o755)
        output = self.check()[1]
        self.assertIn("run clang-format-22 -i compiler/a.cc", output)
        self.assertRegex(output, r"tidy +FAILED.*\n +generated headers may be missing: .*\n +a.cc: error: 'b.h.inc'")

    def test_unknown_argument(self):
        self.assertEqual(self.check("--quick"), (2, "check: expected no argument, or --fast, found '--quick'\n"))


class CompileCommandsTest(unittest.TestCase):
    def test_paths_outside_of_the_tree_and_precompiled_headers(self):
        action = ["clang", "-isystem", "external/llvm/include", "-Iexternal/a", "-include-pch", "bazel-out/x.pch", "-c", "b.cc",
                  "-o", "bazel-out/k8-opt/bin/b.o"]
        self.assertEqual(list(compile_commands.commands([{"arguments": action}], "/root", "/base/external")), [{
            "directory": "/root", "file": "b.cc",
            "arguments": ["clang", "-isystem", "/base/external/llvm/include", "-I/base/external/a", "-c", "b.cc", "-o",
                          "bazel-out/k8-opt/bin/b.o"]}])

    def test_one_command_per_source(self):
        actions = [{"arguments": ["clang", "-c", source, "-o", "bazel-out/%s/bin/x.o" % folder]}
                   for source, folder in (("a.cc", "host"), ("a.cc", "k8-opt-ST-1"), ("a.cc", "k8-opt"), ("b.cc", "host"))]
        found = list(compile_commands.commands(actions, "/root", "/external"))
        self.assertEqual([(entry["file"], entry["arguments"][-1]) for entry in found],
                         [("a.cc", "bazel-out/k8-opt/bin/x.o"), ("b.cc", "bazel-out/host/bin/x.o")])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
