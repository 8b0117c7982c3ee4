"""A client of the API, in one file, with Python's standard library alone: brings a copy up to date once.

It shares no code with the crate. API_URL, API_KEY and STATE, the name of a file, are in the environment. It prints the
id of each call that it has not had before; the exit status is 0 if the copy is complete.
"""
import calendar, datetime, email.utils, http.client, json, os, random, sys, time, urllib.error, urllib.parse, urllib.request


class GivenUp(Exception):
    pass


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Client:
    lag, tries = 60, 6

    def __init__(self):
        self.url, self.key, self.file = os.environ["API_URL"], os.environ["API_KEY"], os.environ["STATE"]
        self.opener = urllib.request.build_opener(*self.handlers())
        self.state = {"watermark": None, "known": {}}
        if os.path.exists(self.file):
            with open(self.file) as file:
                self.state = json.load(file)

    def handlers(self):
        return [NoRedirect()]

    def run(self):
        after, cursor, seen, newest = self.after(), None, set(), None
        while True:
            page = self.page(after, cursor)
            for call in page["data"]:
                self.take(call)
            if newest is None:
                newest = self.newest(page["data"]) or self.state["watermark"]
            cursor = self.next(page)
            if cursor is None:
                break
            if self.is_known(cursor, seen):
                raise GivenUp("the cursor comes again")
            seen.add(cursor)
        self.state["watermark"] = max(filter(None, [newest, self.state["watermark"]]), default=None)
        self.save()

    def is_known(self, cursor, seen):
        return cursor in seen

    def newest(self, calls):
        times = [call["created_at"] for call in calls if self.is_readable(call)]
        return max(times, default=None)

    def after(self):
        if self.state["watermark"] is None:
            return None
        at = datetime.datetime.fromisoformat(self.state["watermark"].replace("Z", "+00:00"))
        return (at - datetime.timedelta(seconds=self.lag)).isoformat().replace("+00:00", "Z")

    def is_readable(self, call):
        return isinstance(call, dict) and all(isinstance(call.get(name), str) for name in ("id", "started_at", "created_at"))

    def take(self, call):
        if not self.is_readable(call) or call["id"] in self.state["known"]:
            return
        self.state["known"][call["id"]] = call["created_at"]
        self.save()
        print(call["id"], flush=True)

    def save(self):
        with open(self.file + ".next", "w") as file:
            json.dump(self.state, file)
        os.replace(self.file + ".next", self.file)

    def next(self, page):
        cursor = page.get("next_cursor")
        if page.get("has_more") is False:
            return None
        if page.get("has_more") and not cursor:
            raise GivenUp("there is more, and no cursor")
        return cursor or None

    def page(self, after, cursor):
        given = {"limit": "100"}
        if cursor is not None:
            given["cursor"] = cursor
        elif after is not None:
            given["created_after"] = after
        return self.ask("/v1/calls?" + self.query(given))

    def query(self, given):
        return urllib.parse.urlencode(given)

    def ask(self, target):
        for attempt in range(self.tries):
            try:
                with self.opener.open(self.request(target), timeout=10) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                if not self.is_worth_a_retry(error.code):
                    raise GivenUp(f"{error.code}") from None
                wait = self.retry_after(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException, ValueError) as error:
                wait = self.broken(error)
            time.sleep(wait + 0.2 * 2**attempt * (1 + random.random()))
        raise GivenUp("no answer")

    def request(self, target):
        return urllib.request.Request(self.url + target, headers={"Authorization": "Bearer " + self.key})

    def is_worth_a_retry(self, status):
        return status in (408, 425, 429) or status >= 500 and status not in (501, 505)

    def broken(self, error):
        return 0

    def retry_after(self, text):
        if text is None:
            return 0
        if text.isdecimal():
            return min(int(text), 3600)
        parsed = email.utils.parsedate(text)
        return min(max(calendar.timegm(parsed) - time.time(), 0), 3600) if parsed else 0


def main(kind=Client):
    try:
        kind().run()
    except GivenUp as why:
        print(why, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
