"""Makes PyPI's PyTorch importable on a machine without CUDA libraries: writes a stub for each library that it links against.

PyPI's Linux wheel of torch links against about 2.5 GB of CUDA packages that a CPU run never calls. Each stub defines the symbols
that the wheel's libraries import; every function returns cudaErrorNoDevice. The CUDA runtime itself (2 MB) is the real one,
because a CPU run does query it for devices. Usage: cuda_stubs.py TORCH_DIR
"""

import collections
import pathlib
import re
import subprocess
import sys

NO_DEVICE = 100  # cudaErrorNoDevice: torch.cuda.is_available() is then False


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, str(path)], check=True, capture_output=True, text=True).stdout


def needed_libraries(path):
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", readelf("--dynamic", path))


def needed_symbols(path):
    """(symbol, version) of each undefined symbol, and the library in which each version is expected."""
    undefined = re.findall(r"\bUND\s+([A-Za-z_]\w*)(?:@+([\w.]+))?", readelf("--dyn-syms", path))
    library_of, library = {}, None
    for line in readelf("--version-info", path).splitlines():
        if match := re.search(r"File: (\S+)", line):
            library = match.group(1)
        elif match := re.search(r"Name: (\S+)\s+Flags", line):
            library_of[match.group(1)] = library
    return undefined, library_of


def write_stub(directory, soname, symbols):
    """symbols: version name (or "" for none) -> names."""
    names = sorted(set().union(*symbols.values())) if symbols else []
    source = "".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in names) or "extern int unused;\n"
    script = directory / (soname + ".map")
    script.write_text("".join(
        f"{version} {{ global: {' '.join(f'{name};' for name in sorted(members))} }};\n"
        for version, members in symbols.items() if version))
    command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", f"-Wl,-soname,{soname}", "-o", str(directory / soname)]
    if script.stat().st_size:
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, input=source, text=True, check=True)
    script.unlink()


def main():
    torch_lib = pathlib.Path(sys.argv[1]) / "lib"
    own = sorted(torch_lib.glob("*.so*"))
    shipped = {path.name for path in own} | {path.name for path in torch_lib.glob("../../nvidia/*/lib/*")}
    cuda = re.compile(r"lib(cu(?!da\.)|nccl|nv)")  # libcuda belongs to the driver; torch expects it to be absent
    missing = {soname for path in own for soname in needed_libraries(path)
               if soname not in shipped and cuda.match(soname)}
    wanted = {soname: collections.defaultdict(set) for soname in missing}
    for path in own:
        undefined, library_of = needed_symbols(path)
        linked = set(needed_libraries(path)) & missing
        for name, version in undefined:
            if version and library_of.get(version) in missing:
                wanted[library_of[version]][version].add(name)
            elif not version:  # an unversioned CUDA symbol can be looked up in any of the libraries
                for soname in linked:
                    if re.match(r"(cu|__cuda|nccl|nvrtc|nvshmem)", name):
                        wanted[soname][""].add(name)
    for soname, symbols in sorted(wanted.items()):
        write_stub(torch_lib, soname, symbols)
        print(f"{soname}: {sum(map(len, symbols.values()))} symbols")


if __name__ == "__main__":
    main()
