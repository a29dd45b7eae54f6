"""lit tests as Bazel tests: one target per file, and every file of the folder has one."""

def lit_tests(data = []):
    """Declares a test for each .mlir file of this package (glob: none can be forgotten)."""
    for src in native.glob(["*.mlir"]):
        native.sh_test(
            name = src.replace(".mlir", "_lit"),
            size = "small",
            srcs = ["//third_party:run_lit.sh"],
            args = ["$(location %s)" % src],
            data = [
                src,
                "//compiler/tools:partita",
                "//compiler/tools:partita-opt",
                "//runtime/tools:partita-run",
                "//tests:lit.cfg.py",
            ] + data,
        )
