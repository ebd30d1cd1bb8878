"""Files that take longest go first, so that no worker is left with one when others are done."""

LONGEST = (
    "test_one_record.py",
    "test_additive_noise.py",
    "test_same_bits.py",
    "test_docs.py",
    "test_sensitivity_neighbours.py",
    "test_soft.py",
    "test_distributions.py",
    "test_dask.py",
    "test_private_search.py",
    "test_notebooks.py",
    "test_variation_lap.py",
    "test_folder.py",
    "test_sparse_vector.py",
    "test_kept_programs.py",
)


def pytest_configure(config):
    # Of pytest-xdist, which would put files of many tests first.
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
