"""Tests in Python's standard library, run by Debian's python3."""

def python_test(name, src, data = [], **kwargs):
    """Runs `src` with /usr/bin/python3 -S in the runfiles folder."""
    native.sh_test(
        name = name,
        srcs = ["//third_party:run_python.sh"],
        args = ["$(location %s)" % src],
        data = [src] + data,
        **kwargs
    )
