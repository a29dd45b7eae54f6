"""flatc as a Bazel rule."""

def flatbuffer_cc(name, src):
    """Generates `<name>_generated.h` from the schema `src` (named <name>.fbs)."""
    native.genrule(
        name = name + "_flatc",
        srcs = [src],
        outs = [name + "_generated.h"],
        cmd = "/usr/bin/flatc --cpp --scoped-enums --gen-object-api -o $(@D) $(location %s)" % src,
    )
