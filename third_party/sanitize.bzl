"""Sanitized builds inside an ordinary `bazel test //...`: a transition adds the flags to a target and all its dependencies."""

_FLAGS = {
    "fuzz": ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=undefined"],
    "asan": ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=undefined"],
    "tsan": ["-fsanitize=thread"],
}

def _sanitize_transition_impl(settings, attr):
    flags = _FLAGS[attr.sanitizer]
    extra = ["-fsanitize=fuzzer-no-link"] if attr.sanitizer == "fuzz" else []
    return {
        "//command_line_option:copt": settings["//command_line_option:copt"] + flags + extra + ["-O1", "-g1"],
        "//command_line_option:linkopt": settings["//command_line_option:linkopt"] + flags,
        # The precompiled header of --config=pch has other flags.
        "//command_line_option:per_file_copt": [],
        "//command_line_option:strip": "never",
    }

_sanitize_transition = transition(
    implementation = _sanitize_transition_impl,
    inputs = ["//command_line_option:copt", "//command_line_option:linkopt"],
    outputs = [
        "//command_line_option:copt",
        "//command_line_option:linkopt",
        "//command_line_option:per_file_copt",
        "//command_line_option:strip",
    ],
)

def _sanitized_binary_impl(ctx):
    binary = ctx.attr.binary[0][DefaultInfo]
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = binary.files_to_run.executable, is_executable = True)
    return [DefaultInfo(executable = out, runfiles = binary.default_runfiles)]

sanitized_binary = rule(
    implementation = _sanitized_binary_impl,
    executable = True,
    attrs = {
        "binary": attr.label(cfg = _sanitize_transition),
        "sanitizer": attr.string(values = _FLAGS.keys()),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)

def sanitized_test(name, binary, sanitizer, data = [], tags = [], **kwargs):
    """Runs a test binary built with a sanitizer."""
    sanitized_binary(
        name = name + "_binary",
        testonly = 1,
        binary = binary,
        sanitizer = sanitizer,
        tags = tags,
    )
    native.sh_test(
        name = name,
        srcs = ["//third_party:run_binary.sh"],
        # LLVM is built without the sanitizer. Its library does not annotate
        # containers, and would not clear the poison that its headers set in our code.
        args = [
            "env",
            "ASAN_OPTIONS=detect_container_overflow=0:allow_user_poisoning=0",
            "TSAN_OPTIONS=suppressions=$(location //third_party:tsan.supp)",
            "$(location %s_binary)" % name,
        ],
        data = [
            name + "_binary",
            "//third_party:tsan.supp",
        ] + data,
        tags = tags,
        **kwargs
    )

def sanitized_tests(name, tests, sanitizer):
    """Runs test binaries built with a sanitizer. //a/b:c_test becomes the test b_c_asan_test; the suite NAME has all of them."""
    names = [
        test[2:].split("/")[-1].replace(":", "_").replace("_test", "_%s_test" % sanitizer)
        for test in tests
    ]
    for i in range(len(tests)):
        sanitized_test(
            name = names[i],
            size = "large",
            binary = tests[i],
            sanitizer = sanitizer,
            tags = [
                "long",
                "manual",
            ],
        )
    native.test_suite(
        name = name,
        tags = ["manual"],
        tests = [":" + n for n in names],
    )

def fuzz_test(name, srcs, deps, seeds = []):
    """A libFuzzer target under AddressSanitizer and UBSan. The test NAME_long, for //tests:long, runs it for ten minutes from `seeds`."""
    native.cc_binary(
        name = name + "_raw",
        testonly = 1,
        srcs = srcs,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps,
    )
    sanitized_binary(
        name = name + "_binary",
        testonly = 1,
        binary = name + "_raw",
        sanitizer = "fuzz",
        tags = ["manual"],
    )
    native.sh_test(
        name = name + "_long",
        size = "large",
        srcs = ["//third_party:run_fuzzer.sh"],
        args = ["$(location %s_binary)" % name, "600"] + ["$(locations %s)" % seed for seed in seeds],
        data = [name + "_binary"] + seeds,
        tags = ["long", "manual"],
        visibility = ["//tests:__pkg__"],
    )
