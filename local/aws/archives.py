"""The bytes of a function's package, from the archive the program declared."""

import io
import zipfile
from pathlib import Path
from typing import Any

from local.aws.values import Props, as_object

_EPOCH = (1980, 1, 1, 0, 0, 0)


class ArchiveError(Exception):
    """The archive cannot be read; the sentence names the path."""


def zip_bytes(archive: Any) -> bytes:
    """A zip file of the archive: as it is, made from a folder, or put together from assets."""
    bag = as_object(archive) or {}
    if (path := bag.get("path")) is not None:
        return _from_path(Path(path))
    if (assets := as_object(bag.get("assets"))) is not None:
        return _zipped(_members(assets, prefix=""))
    raise ArchiveError("code: an archive with a path or with assets is needed; remote archives are not fetched")


def _from_path(path: Path) -> bytes:
    if path.is_dir():
        return _zipped({str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()})
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArchiveError(
            f"code: {path} cannot be read ({error.strerror}); build the function packages first"
        ) from error
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise ArchiveError(f"code: {path} is neither a folder nor a zip file")
    return content


def _members(assets: Props, prefix: str) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    for name, asset in assets.items():
        bag = as_object(asset) or {}
        target = f"{prefix}{name}"
        if (nested := as_object(bag.get("assets"))) is not None:
            members.update(_members(nested, prefix=f"{target}/"))
        elif (text := bag.get("text")) is not None:
            members[target] = str(text).encode()
        elif (path := bag.get("path")) is not None and Path(path).is_dir():
            folder = Path(path)
            files = (file for file in folder.rglob("*") if file.is_file())
            members.update({f"{target}/{file.relative_to(folder)}": file.read_bytes() for file in files})
        elif path is not None:
            members[target] = Path(path).read_bytes()
        else:
            raise ArchiveError(f"code: '{target}' is neither text nor a file; remote assets are not fetched")
    return members


def _zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            package.writestr(info, members[name])
    return buffer.getvalue()
