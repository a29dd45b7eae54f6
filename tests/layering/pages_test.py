"""Pages and comments name only things that exist, and each kind of page is there. Reads the source tree, like layering_test.py."""

import os
import sys
import tempfile
import unittest

import build_files
import pages

ROOT = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path.append(os.path.join(ROOT, "third_party"))
import licences  # pylint: disable=wrong-import-position


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.labels = set(build_files.BuildFiles(ROOT).targets)

    def expect_none(self, violations):
        found = list(violations)
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_links_resolve(self):
        self.expect_none(pages.broken_links(ROOT))

    def test_paths_exist(self):
        self.expect_none(pages.missing_paths(ROOT))

    def test_targets_exist(self):
        self.expect_none(pages.missing_targets(ROOT, self.labels))

    def test_options_exist(self):
        self.expect_none(pages.unknown_options(ROOT))

    def test_comments_name_pages_of_this_tree(self):
        self.expect_none(pages.missing_pages(ROOT))

    def test_passes_and_operations_have_reference_pages(self):
        self.expect_none(pages.missing_references(ROOT, self.labels))

    def test_packages_and_data_have_licences(self):
        self.expect_none(licences.violations(ROOT))


class SamplesTest(unittest.TestCase):
    """Each check finds its violation in a small tree."""

    def found(self, check, tree, *arguments):
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(check(root, *arguments))

    def test_links(self):
        tree = {"tests/A.md": "# A\n## To add: a `pass`\n[b](../B.md) [here](#to-add-a-pass)\n```\n[x](y)\n```\n",
                "B.md": "[a](tests/A.md#to-add-a-pass) [web](https://x.org/y) `[c](d)`\n"}
        self.assertEqual(self.found(pages.broken_links, tree), [])
        self.assertEqual(self.found(pages.broken_links, dict(tree, **{"B.md": "\n[c](tests/C.md)\n"}))[0],
                         "B.md:2: expected a file, found a link to tests/C.md")
        self.assertEqual(self.found(pages.broken_links, dict(tree, **{"B.md": "[a](tests/A.md#no)\n"})),
                         ["B.md:1: expected a heading of tests/A.md, found a link to #no"])

    def test_paths(self):
        tree = {"compiler/core/mesh.h": "", "compiler/core/mesh.cc": "",
                "A.md": "`compiler/core/` `compiler/core/mesh.{h,cc}` `compiler/core/mesh` `compiler/*/mesh.h` `other/x`\n"}
        self.assertEqual(self.found(pages.missing_paths, tree), [])
        self.assertEqual(self.found(pages.missing_paths, dict(tree, **{"A.md": "`compiler/core/mesh.{h,td}`\n"})),
                         ["A.md:1: expected a file or folder, found compiler/core/mesh.td"])

    def test_targets(self):
        labels = {"//tests:long", "//compiler/core:mesh", "//:demo"}
        page = "//tests:long //compiler/core //compiler/... //:demo //... https://tests/x `// tests` //tests:BUILD\n"
        self.assertEqual(self.found(pages.missing_targets, {"tests/BUILD": "", "A.md": page}, labels), [])
        self.assertEqual(self.found(pages.missing_targets, {"A.md": "//tests:longer\n\n//tests/e2e."}, labels),
                         ["A.md:1: expected a target, found //tests:longer", "A.md:3: expected a target, found //tests/e2e"])

    def test_options(self):
        tree = {"a.cc": 'add("--zero", x);', "b.td": 'Pass<"partita-join"> Option<"max_size", "max-size", "int">', "c.sh": "case --quick)",
                "A.md": "--zero --partita-join --max-size --quick --jobs=1 a--b\n"}
        self.assertEqual(self.found(pages.unknown_options, tree), [])
        self.assertRegex(self.found(pages.unknown_options, dict(tree, **{"A.md": "\n--zeroes"}))[0], "^A.md:2: .*found --zeroes;")

    def test_pages(self):
        tree = {"compiler/plan/PLAN.md": "", "compiler/plan/a.h": "// See PLAN.md and compiler/plan/PLAN.md.\n"}
        self.assertEqual(self.found(pages.missing_pages, tree), [])
        self.assertEqual(self.found(pages.missing_pages, dict(tree, **{"compiler/b.h": "\n// See PLAN.md.\n"})),
                         ["compiler/b.h:2: expected a page of this tree, found PLAN.md"])

    def test_references(self):
        tree = {"compiler/x/passes.td": "", "dialects/y/ops.td": ""}
        self.assertEqual(self.found(pages.missing_references, tree, {"//compiler/x:passes_docs_test", "//dialects/y:ops_docs_test"}), [])
        self.assertRegex(self.found(pages.missing_references, tree, {"//dialects/y:ops_docs_test"})[0],
                         r"^compiler/x/passes.td: expected reference_page\(page = \"PASSES.md\"")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
