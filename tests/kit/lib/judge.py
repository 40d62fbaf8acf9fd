"""judge.py CLIENT MODE FOLDER [NAME ARGUMENTS TEXT]...   judges what one client reported of its visit through weir.

Reads FOLDER/CLIENT.json (the client's summary) and FOLDER/bare-UPSTREAM.json (what a client sees of each upstream alone), writes
a verdict per check to FOLDER/CLIENT.verdict and prints "PASSED FAILED".
"""
import json, pathlib, re, sys

client, mode, folder, *rest = sys.argv[1:]
calls = [rest[i:i + 3] for i in range(0, len(rest), 3)]
folder = pathlib.Path(folder); stem = client.replace(":", "-")
lines, counts = [], [0, 0]

def check(ok, what, detail=""):
    counts[0 if ok else 1] += 1
    lines.append(f"{'ok   ' if ok else 'FAIL '} {client}: {what}" + ("" if ok or not detail else f": {detail}"))

def last_json(path):
    try: return json.loads(path.read_text().strip().splitlines()[-1])
    except (IndexError, ValueError): return None

def squeeze(text):
    """JSON texts compare equal whatever their white space."""
    try: return json.dumps(json.loads(text), sort_keys=True)
    except (TypeError, ValueError): return text

seen = last_json(folder / f"{stem}.json")
if seen is None:
    err = (folder / f"{stem}.err").read_text().strip().splitlines()
    check(False, "no summary", " ".join(err[-3:])[:300])
else:
    check(not seen["errors"], f"{seen['client']} {seen['protocol'] or ''} without errors", "; ".join(seen["errors"]))
    if seen["protocol"] and mode in ("legacy", "modern"):
        check((seen["protocol"] >= "2026-07-28") == (mode == "modern"), f"speaks a {mode} revision", seen["protocol"])
    names = seen["names"]
    check(len(names) == len(set(names)), "no name twice")
    for bare in sorted(folder.glob("bare-*.json")):
        upstream = bare.stem.removeprefix("bare-")
        want = {f"{upstream}__" + re.sub(r"[^A-Za-z0-9_-]", "_", n) for n in last_json(bare)["names"]}
        missing = sorted(want - set(names))
        check(not missing, f"all {len(want)} tools of {upstream} listed", "missing " + " ".join(missing))
    called = {c["name"]: c for c in seen["called"]}
    for name, _, text in calls:
        got = called.get(name)
        check(got is not None and not got["isError"] and squeeze(got["text"]) == squeeze(text), f"call of {name}", f"got {got and got['text']!r}")

(folder / f"{stem}.verdict").write_text("\n".join(lines) + "\n")
print(*counts)
