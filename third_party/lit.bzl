"""lit tests as Bazel tests: one target for every .mlir file of the folder."""

def lit_tests(data = []):
    """Declares a test for each .mlir file of this package. Uses a glob, so that every file is included."""
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
