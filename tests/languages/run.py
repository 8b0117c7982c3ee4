"""Runs verify.py over the table of vectors: run.py VERIFY.PY TABLE.TSV."""

import importlib.util
import platform
import sys

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("verify", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

# Servers decode headers in one of these two ways.
DECODERS = (lambda b: b.decode("latin-1"), lambda b: b.decode("utf-8", "replace"))


def unhex(cell):
    return [] if cell == "-" else [bytes.fromhex(text) for text in cell.split(",")]


def verdict(*arguments):
    try:
        good = module.verify(*arguments)
    except Exception as error:
        return repr(error)
    return {True: "accepted", False: "refused"}.get(good, repr(good))


passed, total = 0, 0
for line in open(sys.argv[2], encoding="utf-8").read().splitlines()[1:]:
    name, signatures, secrets, body, now, tolerance, expected = line.split("\t")
    secrets = [secret.decode() for secret in unhex(secrets)]
    # Most cases have the tolerance that is the default.
    tolerance = [] if tolerance == "300" else [int(tolerance)]
    found = set()
    for decode in DECODERS:
        values = [decode(value) for value in unhex(signatures)]
        # A list, and what stands for it where a server hands out one value or none.
        forms = [values] + ([values[0]] if len(values) == 1 else []) + ([None] if not values else [])
        for form in forms:
            found.add(verdict(form, bytes.fromhex(body), secrets, int(now), *tolerance))
    total += 1
    if found == {expected}:
        passed += 1
    else:
        print(f"{name}: expected {expected}, found {found}", file=sys.stderr)

print(platform.python_version(), passed, total, sep="\t")
sys.exit(passed != total)
