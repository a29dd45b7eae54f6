"""Reference pages generated from TableGen, and the test that keeps them up to date."""

def reference_page(page, td_file, generator, deps = []):
    """Checks that `page` (a checked-in .md) equals the output of mlir-tblgen for `td_file`.

    Args:
      page: the page's file name; `bazel-bin/<package>/<page>.generated` is the expected content.
      td_file: label of the .td file.
      generator: mlir-tblgen options, e.g. "-gen-dialect-doc -dialect=nn".
      deps: filegroups of .td files that td_file includes.
    """
    native.genrule(
        name = page + "_generate",
        srcs = [td_file] + deps,
        outs = [page + ".generated"],
        cmd = "/usr/lib/llvm-22/bin/mlir-tblgen %s -I /usr/lib/llvm-22/include -I . $(location %s) > $@" % (generator, td_file),
    )
    native.sh_test(
        name = page.replace(".md", "").lower() + "_docs_test",
        size = "small",
        srcs = ["//third_party:same_file.sh"],
        args = ["$(location %s)" % page, "$(location %s.generated)" % page],
        data = [page, page + ".generated"],
    )
