"""Replaces the durable host's processes by those of another version, one after the other, and back: rolling.py OLD NEW.

Two API processes and two senders of OLD work. `migrate` of NEW runs beside them; then each process is replaced by one of
NEW, then by one of OLD again, as after a version that turned out wrong, and by NEW for good. Meanwhile an owner's program
records calls, a customer reads, and another customer asks as often as it can. A client goes to the other API process
where one is gone, as a load balancer does.
"""

import json
import os
import sys
import threading
import time

from host import Receiver, World, request, until

READER, GREEDY = "service_live_" + "1" * 32, "service_live_" + "2" * 32
# Requests of a credential in a minute.
QUOTA = 60


class Balancer:
    """The API processes that take requests now."""

    def __init__(self):
        self.processes = []

    def ask(self, kind, method, path, body=None, key=None):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        refused = []
        for process in list(self.processes):
            try:
                status, value = request(getattr(process, kind), method, path, body, headers)
            except OSError as error:
                refused.append(repr(error))
                continue
            if status < 500:
                self.processes = self.processes[1:] + self.processes[:1]
                return status, value
            refused.append((status, value))
        return None, refused


def main(old, new):
    receiver = Receiver()
    with World() as world:
        world.serve("data")
        print("schema of the old version", world.run(old, "migrate").strip())
        data = world.path("data.json")
        with open(data, "w") as file:
            json.dump({"accounts": [
                {"id": "acct_1", "timezone": "Europe/Oslo", "keys": [{"name": "reader", "secret": READER}],
                 "endpoints": [{"url": receiver.url("/one")}, {"url": receiver.url("/two")}]},
                {"id": "acct_2", "timezone": "Europe/Oslo", "keys": [{"name": "greedy", "secret": GREEDY}]}]}, file)
        balancer = Balancer()
        balancer.processes = [world.start(old, "api", "--data", data), world.start(old, "api")]
        senders = [world.start(old, "sender"), world.start(old, "sender")]

        stop, events, wrong, admitted, reads = threading.Event(), [], [], [], []

        def record():
            number = 0
            while not stop.wait(0.02):
                number += 1
                status, value = balancer.ask("dashboard", "POST", "/accounts/acct_1/calls", {"id": f"call_{number}"})
                # 409: the first process has stored it, and was gone before its answer.
                if status == 201:
                    events.append(value["event_id"])
                elif status != 409:
                    wrong.append(("recorded", status, value))

        def read():
            # Below the quota.
            while not stop.wait(60 / QUOTA * 1.1):
                status, value = balancer.ask("api", "GET", "/v1/calls?limit=1", key=READER)
                reads.append(status)
                if status != 200:
                    wrong.append(("read", status, value))

        def hurry():
            while not stop.wait(0.05):
                status, value = balancer.ask("api", "GET", "/v1/account", key=GREEDY)
                if status == 200:
                    admitted.append(time.monotonic())
                elif status != 429:
                    wrong.append(("hurried", status, value))

        clients = [threading.Thread(target=work) for work in (record, read, hurry)]
        for client in clients:
            client.start()
        time.sleep(2)
        refused = world.fails(new, "sender", "--keys", world.ring(new))
        assert "migration 2 is not applied" in refused, refused
        world.run(new, "migrate")
        for version, program in (("new", new), ("old", old), ("new", new)):
            for at in range(2):
                # The next one takes requests before the last one ends.
                fresh = world.start(program, "api")
                leaving = balancer.processes[0]
                balancer.processes = balancer.processes[1:] + [fresh]
                time.sleep(0.5)
                leaving.end()
                fresh = world.start(program, "sender")
                senders.pop(0).end()
                senders.append(fresh)
                time.sleep(1)
            print(f"all processes are of the {version} version: {len(events)} events so far")
        stop.set()
        for client in clients:
            client.join()
        assert not wrong, wrong[:5]
        assert len(events) > 100 and len(reads) > 5 and admitted, (len(events), len(reads), len(admitted))
        until("nothing is pending",
              lambda: world.sql("SELECT count(*) FROM deliveries") == "0")
        for path in ("/one", "/two"):
            arrived = receiver.times(path)
            missing = [event for event in events if event not in arrived]
            assert not missing, (path, missing[:5])
            twice = [event for event, times in arrived.items() if times > 1]
            assert not twice, f"an end by SIGTERM sends nothing twice: {path} {twice[:5]}"
        # A second less than the window: answers arrive at other times than they were counted.
        most = max(sum(begin <= at < begin + 59 for at in admitted) for begin in admitted)
        assert most <= QUOTA, most
        for process in [*balancer.processes, *senders]:
            process.end()
    print(f"replaced: {len(events)} events at both endpoints once, {len(reads)} reads, no refusal; "
          f"{most} requests in a minute of a quota of {QUOTA}")


main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
