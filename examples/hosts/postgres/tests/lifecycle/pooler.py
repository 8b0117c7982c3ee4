"""Runs the durable host through PgBouncer, in each mode: pooler.py PROGRAM.

A pooler of sessions works, if the role has what PgBouncer drops, as docs/scaling.md says. Anything else is refused at once,
with 2 and with what to do.
"""

import json
import os
import re
import subprocess
import sys

from host import DEPLOY, Receiver, World, port, until

ROLES = {"api": ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"], "sender": []}


def pooler(world, mode, user, options):
    """Starts PgBouncer, and returns the URL through it."""
    at = port()
    config = world.path(f"{at}.ini")
    with open(config, "w") as file:
        file.write(f"[databases]\npostgres = host={world.folder} port={world.port} user={user}\n[pgbouncer]\n"
                   f"listen_addr = 127.0.0.1\nlisten_port = {at}\nunix_socket_dir =\nauth_type = any\n"
                   f"pool_mode = {mode}\ndefault_pool_size = 60\n{options}\n")
    os.chmod(config, 0o644)
    world.beside("pgbouncer", config, ready=at)
    return f"postgresql://{user}@127.0.0.1:{at}/postgres"


def refused(world, program, role, url):
    done = subprocess.run([program, role, "--database", url, "--keys", world.ring(program), *ROLES[role]],
                          env=world.environment, text=True, capture_output=True, timeout=10)
    assert done.returncode == 2 and not done.stdout, (role, url, done)
    assert "docs/scaling.md" in done.stderr and "pooler" in done.stderr, (role, done.stderr)
    return done.stderr.strip()


def main(program):
    receiver = Receiver()
    settings = re.findall(r"^ALTER ROLE service (SET .*);$", (DEPLOY.parent / "docs/scaling.md").read_text(), re.M)
    assert len(settings) > 5, settings
    with World() as world:
        world.serve("data")
        world.run(program, "migrate")
        for user in ("bare", "fit"):
            world.sql(f"CREATE ROLE {user} SUPERUSER LOGIN")
        for setting in settings:
            world.sql(f"ALTER ROLE fit {setting}")
        dropped = "ignore_startup_parameters = options"
        for mode, user, options in (("session", "fit", ""), ("session", "bare", dropped), ("transaction", "fit", ""),
                                    ("transaction", "bare", dropped), ("transaction", "fit", dropped)):
            url = pooler(world, mode, user, options)
            for role in ROLES:
                print(f"{mode}, {user}, {options or 'no options'}: {role}: {refused(world, program, role, url)}")

        url = pooler(world, "session", "fit", dropped)
        data = world.path("data.json")
        with open(data, "w") as file:
            json.dump({"accounts": [{"id": "acct_1", "timezone": "Europe/Oslo",
                                     "keys": [{"name": "one", "secret": "service_live_" + "1" * 32}],
                                     "endpoints": [{"url": receiver.url("/one")}]}]}, file)
        api, sender = world.start(program, "api", "--data", data, url=url), world.start(program, "sender", url=url)
        events = []
        for number in range(200):
            status, value = api.ask("POST", "/accounts/acct_1/calls", {"id": f"call_{number}"})
            assert status == 201, value
            events.append(value["event_id"])
        until("all have arrived", lambda: len(receiver.times("/one")) == len(events))
        assert set(receiver.times("/one").values()) == {1}
        for process in (api, sender):
            process.end()
            assert " WARN " not in process.text() and " ERROR " not in process.text(), process.text()
    print(f"{len(events)} events through a pooler of sessions, each once")


main(os.path.abspath(sys.argv[1]))
