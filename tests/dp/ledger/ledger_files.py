"""Ledgers' files by hand, by what their format says: nothing of this is the package's code."""

import hashlib
import json
import sqlite3

SCHEMA_1 = (
    "CREATE TABLE charges (serial INTEGER PRIMARY KEY, event TEXT, hash BLOB)",
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY, header TEXT, charges INTEGER, head BLOB)",
)


def compact(content):
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def header_text(epsilon=1.0, delta=0.0, records=1, data_set="x"):
    budget = {
        "epsilon": float(epsilon).hex(),
        "delta": float(delta).hex(),
        "records": records,
        "failure_share": (1 / 64).hex(),
    }
    return compact({"identity": "ab" * 16, "data_set": data_set, "budget": budget})


def chained(header, texts):
    """The hashes of entries, and the root before them."""
    head = hashlib.sha256(b"dpmic_jax ledger 1\0" + header.encode()).digest()
    hashes = [head]
    for serial, text in enumerate(texts, start=1):
        head = hashlib.sha256(head + serial.to_bytes(8, "big") + text.encode()).digest()
        hashes.append(head)
    return hashes


def write_version_1(path, texts, header=None):
    """A file as it was before it kept totals."""
    header = header_text() if header is None else header
    root, *hashes = chained(header, texts)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 4096")
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {0x64704D49}")
    connection.execute("PRAGMA user_version = 1")
    for statement in SCHEMA_1:
        connection.execute(statement)
    rows = zip(range(1, len(texts) + 1), texts, hashes, strict=True)
    connection.executemany("INSERT INTO charges VALUES (?, ?, ?)", rows)
    row = (1, header, len(texts), [root, *hashes][-1])
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", row)
    connection.execute("COMMIT")
    connection.close()


def sql(path, *statements):
    """Run statements on a file; how many rows the last of them changed."""
    connection = sqlite3.connect(path)
    for statement in statements:
        changed = connection.execute(statement).rowcount
    connection.commit()
    connection.close()
    return changed


def kept(path):
    """What a file of version 2 keeps: header, charges, head, totals."""
    connection = sqlite3.connect(path)
    row = connection.execute("SELECT header, charges, head, totals FROM ledger").fetchone()
    connection.close()
    return row


def forge_totals(path, **changes):
    """Change the totals of a file of version 2 and seal them: what a forger makes."""
    header, charges, head, totals = kept(path)
    totals = compact({**json.loads(totals), **changes})
    sealed = json.dumps([header, charges, head.hex(), totals], separators=(",", ":"))
    seal = hashlib.sha256(b"dpmic_jax ledger 2\0" + sealed.encode()).digest()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE ledger SET totals = ?, seal = ?", (totals, seal))
    connection.commit()
    connection.close()
