"""What a wheel and an sdist contain, and nothing else: `python tests/packaged.py dist`."""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What an sdist has beside the package. Whatever else lies in a checkout stays out.
BESIDE = {
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "PKG-INFO", "README.md"),
    *("SECURITY.md", "benchmarks", "docs", "mkdocs.yml", "notebooks", "pyproject.toml", "tests"),
    ".gitignore",
}


def main(folder: str) -> None:
    (wheel,), (sdist,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
    package = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "dpmic_jax").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    with zipfile.ZipFile(wheel) as file:
        in_wheel = {name for name in file.namelist() if ".dist-info/" not in name}
    with tarfile.open(sdist) as file:
        in_sdist = {name.split("/", 1)[1] for name in file.getnames()}
    assert in_wheel == package, in_wheel ^ package
    assert package <= in_sdist, package - in_sdist
    others = {name.split("/")[0] for name in in_sdist} - BESIDE
    assert others == {"dpmic_jax"}, others


if __name__ == "__main__":
    main(sys.argv[1])
