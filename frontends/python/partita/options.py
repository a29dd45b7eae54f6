"""Python arguments as words of the command line."""

import os
import shutil
import tempfile
import weakref


def words(**options):
    """{"clip_norm": 1, "json": True} becomes ["--clip-norm", "1", "--json"].

    None and False leave an option out. A dict becomes "key=value,key=value". A list repeats the option.
    """
    result = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is None or each is False:
                continue
            result.append(option)
            if each is not True:
                result.append(text(each))
    return result


def text(value):
    if isinstance(value, dict):
        return ",".join("%s=%s" % (key, each) for key, each in value.items())
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def shard_text(shard):
    """The entries of a plan, highest priority first: "B=data;M=tensor", or [{"B": "data"}, {"M": "tensor"}]."""
    if shard is None or isinstance(shard, str):
        return shard
    entries = [shard] if isinstance(shard, dict) else shard
    return ";".join(entry if isinstance(entry, str) else text(entry) for entry in entries)


class Folder:
    """A temporary folder, made when it is first asked for and removed with the object."""

    def __init__(self):
        self._folder = None

    @property
    def is_used(self):
        return self._folder is not None

    def path(self, name):
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="partita-")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return os.path.join(self._folder, name)


def plan_words(plan, mesh, shard, folder):
    """plan: the path of a plan file, the text of one, or a Plan."""
    if plan is None:
        return words(mesh=mesh, shard=shard_text(shard))
    plan_text = getattr(plan, "text", None)
    if plan_text is None and isinstance(plan, str) and "\n" in plan:
        plan_text = plan
    if plan_text is None:
        return words(plan=plan, mesh=mesh, shard=shard_text(shard))
    path = folder.path("plan.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(plan_text)
    return words(plan=path, mesh=mesh, shard=shard_text(shard))
