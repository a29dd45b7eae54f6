"""mlir-tblgen as a Bazel rule."""

_TBLGEN = "/usr/lib/llvm-22/bin/mlir-tblgen"

def mlir_tblgen(name, td_file, outs, deps = [], dialect = None):
    """Generates C++ from TableGen.

    Args:
      name: rule name; the generated files are its outputs.
      td_file: the main .td file.
      outs: {output file: mlir-tblgen options}, e.g. {"ops.h.inc": "-gen-op-decls"}.
      deps: filegroups of .td files that td_file includes from this tree.
      dialect: needed once several dialects are visible through includes.
    """
    select_dialect = "-dialect=%s" % dialect if dialect else ""
    commands = []
    for out, opts in outs.items():
        only = "" if "-gen-op-interface" in opts or "-gen-attrdef" in opts or "-gen-attr-interface" in opts or "-gen-pass" in opts or "-gen-enum" in opts else select_dialect
        commands.append("%s %s %s -I /usr/lib/llvm-22/include -I . $(location %s) -o $(location %s)" %
                        (_TBLGEN, opts, only, td_file, out))
    native.genrule(
        name = name,
        srcs = [td_file] + deps,
        outs = outs.keys(),
        cmd = " && ".join(commands),
    )
