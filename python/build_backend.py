"""Builds wheels of berth (PEP 517) with cmake and nothing else: pip calls it, and so does `make wheel`.

    python3 python/build_backend.py FOLDER [EXTENSION]    makes a wheel there and prints its name; EXTENSION is built already

A wheel is tagged by what its extension really asks of the C library: the versions of glibc's symbols are read from the
file itself. config_settings: build-dir keeps the build there; cmake-args are passed on.
"""

import base64
import hashlib
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTENSION = "_berth.abi3.so"
PYTHON_TAG = "cp311-abi3"
#: What every Linux with glibc has; another library in the file means that the wheel is for this machine alone.
PLAIN = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}


def version():
    text = (ROOT / "include/berth/berth.h").read_text()
    return re.search(r'#define BERTH_VERSION "(.*)"', text).group(1)


# ---- What an ELF file asks for ----


class Elf:
    """The dynamic section of a 64-bit file of this machine's byte order: libraries, and versions of their symbols."""

    def __init__(self, path):
        self.data = Path(path).read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not an ELF file of 64 bits, little-endian")
        (self.sections_at,) = struct.unpack_from("<Q", self.data, 40)
        self.section_size, self.n_sections = struct.unpack_from("<HH", self.data, 58)
        self.machine = struct.unpack_from("<H", self.data, 18)[0]

    def sections(self, kind):
        for i in range(self.n_sections):
            at = self.sections_at + i * self.section_size
            _, of, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", self.data, at)
            if of == kind:
                names = self.sections_at + link * self.section_size
                yield offset, size, struct.unpack_from("<Q", self.data, names + 24)[0]

    def text(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def libraries(self):
        dynamic, needed = 6, 1
        for offset, size, names in self.sections(dynamic):
            for at in range(offset, offset + size, 16):
                tag, value = struct.unpack_from("<qQ", self.data, at)
                if tag == needed:
                    yield self.text(names + value)

    def versions(self):
        """(library, version) of every symbol version that it needs."""
        for offset, _, names in self.sections(0x6FFFFFFE):
            at = offset
            while True:
                _, count, file, first, following = struct.unpack_from("<HHIII", self.data, at)
                entry = at + first
                for _ in range(count):
                    _, _, _, name, step = struct.unpack_from("<IHHII", self.data, entry)
                    yield self.text(names + file), self.text(names + name)
                    entry += step
                if following == 0:
                    break
                at += following


def glibc_of(path):
    """The oldest glibc, as (2, 28), that has every symbol that the file asks for."""
    found = [(2, 5)]
    for _, name in Elf(path).versions():
        match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", name)
        if match:
            found.append((int(match.group(1)), int(match.group(2))))
        elif name.startswith("GLIBC_") and name != "GLIBC_ABI_DT_RELR":
            raise ValueError(f"{path} asks for {name}, which no release of glibc promises")
    return max(found)


def platform_tag(path):
    machine = {62: "x86_64", 183: "aarch64"}.get(Elf(path).machine)
    if machine is None:
        raise ValueError(f"{path} is for a machine that has no tag")
    strange = set(Elf(path).libraries()) - PLAIN - {"ld-linux-aarch64.so.1"}
    if strange:
        print(f"build_backend: {', '.join(sorted(strange))} is not everywhere: a wheel for this machine", file=sys.stderr)
        return f"linux_{machine}"
    return "manylinux_%d_%d_%s" % (*glibc_of(path), machine)


# ---- The build ----


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stdout[-20000:])
        raise RuntimeError(f"{command[0]} failed; what it said stands above")


def build_extension(settings):
    """The folder with the extension."""
    keep = settings.get("build-dir") or os.environ.get("BERTH_PYTHON_BUILD")
    folder = Path(keep) if keep else Path(tempfile.mkdtemp(prefix="berth-wheel-"))
    if subprocess.run(["cmake", "--version"], capture_output=True).returncode != 0:
        raise RuntimeError("berth is built with cmake (Debian: cmake)")
    arguments = shlex.split(settings.get("cmake-args", ""))
    run("cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DBERTH_PYTHON=ON",
        f"-DBERTH_PYTHON_EXECUTABLE={sys.executable}", *arguments)  # fmt: skip
    run("cmake", "--build", folder, "--target", "berth_python", "--parallel", os.environ.get("JOBS", os.cpu_count() or 2))
    made = folder / "python/berth" / EXTENSION
    if not (folder / "CMakeCache.txt").read_text().count("BERTH_SANITIZE:STRING=\n"):
        raise RuntimeError("a wheel is not made of a build with sanitizers")
    return folder, made, not keep


def metadata():
    head = [
        "Metadata-Version: 2.1",
        "Name: berth",
        f"Version: {version()}",
        "Summary: Plans one block of memory for a neural network, and runs it there",
        "License: Apache-2.0",
        "Requires-Python: >=3.11",
        "Provides-Extra: numpy",
        "Requires-Dist: numpy ; extra == 'numpy'",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head) + "\n\n" + (ROOT / "docs/python.md").read_text()


def wheel_text(tag):
    return f"Wheel-Version: 1.0\nGenerator: berth ({version()})\nRoot-Is-Purelib: false\nTag: {tag}\n"


class Wheel:
    """A zip file with a list of its files and their hashes."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.records = []

    def add(self, name, data, mode=0o644):
        data = data.encode() if isinstance(data, str) else data
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes from the same sources
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def close(self, record):
        self.records.append(f"{record},,")
        self.zip.writestr(zipfile.ZipInfo(record, (1980, 1, 1, 0, 0, 0)), "\n".join(self.records) + "\n")
        self.zip.close()


def package_files():
    folder = ROOT / "python/berth"
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".pyi") or path.name == "py.typed")


def write_wheel(folder, tag, files):
    name = f"berth-{version()}-{tag}.whl"
    info = f"berth-{version()}.dist-info"
    wheel = Wheel(Path(folder) / name)
    for path, data, mode in files:
        wheel.add(path, data, mode)
    wheel.add(f"{info}/METADATA", metadata())
    wheel.add(f"{info}/WHEEL", wheel_text(tag))
    wheel.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close(f"{info}/RECORD")
    return name


# ---- What pip calls ----


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = Path(metadata_directory) / f"berth-{version()}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(metadata())
    (info / "WHEEL").write_text(wheel_text(f"{PYTHON_TAG}-linux_x86_64"))
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder, extension, is_temporary = build_extension(config_settings or {})
    try:
        return wheel_of(wheel_directory, extension)
    finally:
        if is_temporary:
            remove(folder)


def wheel_of(wheel_directory, extension):
    """A wheel with an extension that is built already."""
    files = [(str(path.relative_to(ROOT / "python")), path.read_bytes(), 0o644) for path in package_files()]
    files.append((f"berth/{EXTENSION}", stripped(extension), 0o755))
    return write_wheel(wheel_directory, f"{PYTHON_TAG}-{platform_tag(extension)}", files)


def stripped(extension):
    """Without what only debuggers want, where strip is installed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / EXTENSION
        try:
            subprocess.run(["strip", "--strip-unneeded", "-o", copy, extension], check=True, capture_output=True)
            return copy.read_bytes()
        except (OSError, subprocess.CalledProcessError):
            return extension.read_bytes()


def remove(folder):
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package where it is, with an extension that is built into build/python-editable."""
    settings = {"build-dir": str(ROOT / "build/python-editable"), **(config_settings or {})}
    folder, extension, _ = build_extension(settings)
    tag = f"{PYTHON_TAG}-{platform_tag(extension)}"
    return write_wheel(wheel_directory, tag, [("berth.pth", f"{folder / 'python'}\n", 0o644)])


def build_sdist(sdist_directory, config_settings=None):
    """The files that git knows, or all but builds where there is no git."""
    import tarfile

    name = f"berth-{version()}"
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True)
    files = [ROOT / path for path in listed.stdout.decode().split("\0") if path]
    if listed.returncode != 0 or not files:
        files = [path for path in ROOT.rglob("*") if path.is_file() and "build" not in path.relative_to(ROOT).parts]
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
        for path in files:
            if path.is_file():
                archive.add(path, f"{name}/{path.relative_to(ROOT)}")
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as about:
            about.write(metadata())
            about.flush()
            archive.add(about.name, f"{name}/PKG-INFO")
    return f"{name}.tar.gz"


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    print(build_wheel(sys.argv[1]) if len(sys.argv) == 2 else wheel_of(sys.argv[1], Path(sys.argv[2])))
