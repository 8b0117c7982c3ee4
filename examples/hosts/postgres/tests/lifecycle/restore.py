"""Restores the durable host from a base backup and WAL, and holds the table of docs/failover.md: restore.py PROGRAM.

Until the instant T nothing is sent, so that an event is pending there. After T, each thing of the table happens.
Then the disk is lost, and `deploy/restore` makes a cluster of the backup and the archive as it was at T. Each row
of the table is looked for, and what it says that one does is done. Without PostgreSQL it is skipped, and listed in the
file that SKIPPED names.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from host import DEPLOY, Receiver, World, programs, until

ACCOUNT, OTHER = "acct_1", "acct_2"
KEYS = {ACCOUNT: "service_live_" + "1" * 32, OTHER: "service_live_" + "2" * 32}
CALLER = "+4722334455"


def call(id, number="+4790000000"):
    return {"id": id, "caller": {"contact_id": None, "phone_number": number, "display_name": None}}


def main(program):
    if not programs():
        skip("restoring a backup: PostgreSQL is not here")
        return
    receiver = Receiver()
    with World() as world:
        world.serve("first")
        world.run(program, "migrate")
        data = world.path("data.json")
        with open(data, "w") as file:
            json.dump({"accounts": [
                {"id": account, "timezone": "Europe/Oslo", "keys": [{"name": "sync", "secret": key}],
                 "endpoints": [{"url": receiver.url(f"/{account}")}]} for account, key in KEYS.items()]}, file)
        api = world.start(program, "api", "--data", data)

        # Before T: in the backup, or in the WAL after it.
        made(api.ask("POST", f"/accounts/{ACCOUNT}/calls", call("call_in_backup", CALLER)))
        backup = world.database(DEPLOY / "backup", world.url, world.path("backups"))
        pending = made(api.ask("POST", f"/accounts/{ACCOUNT}/calls", call("call_before")))["event_id"]
        revoked = made(api.ask("POST", f"/accounts/{ACCOUNT}/keys", key_named("revoked later")))
        time.sleep(0.2)
        then = world.sql("SELECT clock_timestamp()")
        time.sleep(0.2)

        # After T.
        sender = world.start(program, "sender")
        until("what was pending is delivered", lambda: receiver.times(f"/{ACCOUNT}")[pending] == 1)
        lost = made(api.ask("POST", f"/accounts/{ACCOUNT}/calls", call("call_after")))["event_id"]
        until("an event that will be lost is delivered", lambda: receiver.times(f"/{ACCOUNT}")[lost] == 1)
        created = made(api.ask("POST", f"/accounts/{ACCOUNT}/keys", key_named("created later")))
        assert api.ask("POST", f"/keys/{revoked['id']}/revoke")[0] == 200
        assert api.read("/v1/account", revoked["secret"])[0] == 401
        endpoint = api.ask("GET", f"/accounts/{OTHER}/endpoints")[1]["data"][0]
        assert api.ask("POST", f"/endpoints/{endpoint['id']}/rotate", {})[0] == 200
        assert api.ask("POST", f"/endpoints/{endpoint['id']}/pause")[0] == 200
        assert json.loads(world.run(program, "erase", "--account", ACCOUNT, "--number", CALLER))["left"] is None
        assert caller_of(api, "call_in_backup") is None
        copied = json.loads(world.run(program, "journal", "--lines").splitlines()[-1])["position"]
        new = subprocess.run([program, "keygen", "2"], text=True, capture_output=True, check=True).stdout
        whole, alone = world.path("whole ring"), world.path("new line alone")
        pathlib.Path(alone).write_text(new)
        pathlib.Path(whole).write_text(new + pathlib.Path(world.ring(program)).read_text())
        assert json.loads(world.run(program, "rotate-keys", "--keys", whole)) == {"sealed": 2, "unreadable": 0}
        world.run(program, "ring check", "--keys", alone)
        watermark = api.read("/v1/calls?limit=1", KEYS[ACCOUNT])[1]["data"][0]["created_at"]

        # The last WAL reaches the archive; then the disk is lost. A sender lives on, which docs/failover.md forbids.
        last = world.sql("SELECT pg_walfile_name(pg_switch_wal())")
        until("the archive has it", lambda: world.sql("SELECT last_archived_wal FROM pg_stat_archiver") >= last)
        with open(world.path("first/postmaster.pid")) as pid:
            os.kill(int(pid.readline()), signal.SIGKILL)
        api.end()
        shutil.rmtree(world.path("first"))
        for left in pathlib.Path(world.folder).glob(".s.PGSQL.*"):
            left.unlink()
        # One that fails leaves nothing of its own, and nothing is removed that was there.
        restore, options = (DEPLOY / "restore", backup, world.path("archive")), world.options.split(" ")
        failed = world.refuses(*restore, world.path("second"), "2100-01-01 00:00:00+00", *options)
        assert "recovery ended before" in failed and f"removed {world.path('second')}" in failed, failed
        failed = world.refuses(restore[0], world.path("no backup"), restore[2], world.path("second"))
        assert f"removed {world.path('second')}" in failed, failed
        assert not os.path.exists(world.path("second")), "a restore that failed has left its folder"
        failed = world.refuses(*restore, world.path("archive"), then, *options)
        assert "is there already" in failed and os.listdir(world.path("archive")), failed
        said = world.database(*restore, world.path("second"), then, *options)
        world.ends("second")
        print(said)

        # What the table says of each.
        assert world.sql("SELECT count(*) FROM calls WHERE id = 'call_after'") == "0", "a call of after T is there"
        until("the sender notices", lambda: "the database went back" in sender.text())
        until("it is sent again", lambda: receiver.times(f"/{ACCOUNT}")[pending] == 2)
        sender.end()
        api = world.start(program, "api")
        assert api.read("/v1/calls/call_after", KEYS[ACCOUNT])[0] == 404
        assert api.read("/v1/account", created["secret"])[0] == 401
        assert api.read("/v1/account", revoked["secret"])[0] == 200, "its revocation is of after T"
        assert api.ask("POST", f"/keys/{revoked['id']}/revoke")[0] == 200
        assert api.read("/v1/account", revoked["secret"])[0] == 401
        stored = api.ask("GET", f"/endpoints/{endpoint['id']}")[1]
        assert (stored["status"], stored["previous_secrets_until"]) == ("active", []), "its pause and rotation are of after T"
        assert caller_of(api, "call_in_backup") == CALLER, "its erasure is of after T"
        assert json.loads(world.run(program, "erase", "--account", ACCOUNT, "--number", CALLER))["left"] is None
        assert caller_of(api, "call_in_backup") is None

        # The copy of the journal does not go on as if nothing had been lost, and the old line of the ring is needed.
        assert "begin again" in world.fails(program, "journal", "--lines", "--after", copied)
        assert "key 1 seals 2" in world.fails(program, "ring check", "--keys", alone)
        world.run(program, "ring check", "--keys", whole)

        # Written again with its id, at an instant of now: a sync whose watermark is ahead finds it.
        again = made(api.ask("POST", f"/accounts/{ACCOUNT}/calls", call("call_after")))["event_id"]
        page = api.read(f"/v1/calls?created_after={watermark.replace('+', '%2B')}", KEYS[ACCOUNT])[1]["data"]
        assert [read["id"] for read in page] == ["call_after"], page
        sender = world.start(program, "sender")
        until("its event is sent", lambda: receiver.times(f"/{ACCOUNT}")[again] >= 1)
        until("nothing is pending", lambda: world.sql("SELECT count(*) FROM deliveries") == "0")
        sender.end()
        arrived = [(path, json.loads(body)["account_id"]) for path, _, body in receiver.got]
        assert all(path == f"/{account}" for path, account in arrived), arrived
    print("restored: each row of the table holds")


def key_named(name):
    return {"name": name, "mode": "live", "scopes": ["account:read", "calls:read"]}


def caller_of(api, id):
    return api.read(f"/v1/calls/{id}", KEYS[ACCOUNT])[1]["caller"]["phone_number"]


def made(answer):
    status, value = answer
    assert status == 201, answer
    return value


def skip(why):
    line = f"skipped: {why}"
    print(line)
    if os.environ.get("SKIPPED"):
        with open(os.environ["SKIPPED"], "a") as file:
            file.write(line + "\n")


main(os.path.abspath(sys.argv[1]))
