"""Python tests that need only the standard library, run by Debian's python3."""

def python_test(name, src, data = [], arguments = [], **kwargs):
    """Runs `src` with /usr/bin/python3 -S and `arguments` in the runfiles folder."""
    native.sh_test(
        name = name,
        srcs = ["//third_party:run_python.sh"],
        args = ["$(location %s)" % src] + arguments,
        data = [src] + data,
        **kwargs
    )
