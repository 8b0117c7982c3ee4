"""Clients with one flaw each, for `check client`: python3 flawed_clients.py FLAW"""
import datetime, http.client, sys, time, urllib.request
import client
from client import Client, GivenUp


class CursorUnescaped(Client):  # walk.cursor_escaped
    def query(self, given):
        return "&".join(f"{name}={value.replace('&', '%26')}" for name, value in given.items())


class StopsAtEmptyPage(Client):  # walk.empty_page
    def next(self, page):
        return super().next(page) if page["data"] else None


class IgnoresFlag(Client):  # walk.ends_by_flag
    def next(self, page):
        return page.get("next_cursor") or super().next(page)


class NoCursorIsEnd(Client):  # walk.no_cursor
    def next(self, page):
        return super().next(page) if page.get("next_cursor") else None


class StopsAtUnreadable(Client):  # walk.unreadable
    def take(self, call):
        if not self.is_readable(call):
            raise GivenUp("a call that cannot be read")
        super().take(call)


class WatermarkIsNow(Client):  # again.late
    def newest(self, calls):
        return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


class KnowsNothing(Client):  # again.nothing_twice
    def __init__(self):
        super().__init__()
        self.state["known"] = {}


class AsksTooEarly(Client):  # retry.after_seconds
    def retry_after(self, text):
        return 0 if text and text.isdecimal() else super().retry_after(text)


class IgnoresDates(Client):  # retry.after_date
    def retry_after(self, text):
        return super().retry_after(text) if text and text.isdecimal() else 0


class RepeatsRefusals(Client):  # refused.not_repeated
    def is_worth_a_retry(self, status):
        return status == 401 or super().is_worth_a_retry(status)


class FollowsRedirects(Client):  # key.to_no_stranger
    def handlers(self):
        return [urllib.request.HTTPRedirectHandler()]


class KeyInUrl(Client):  # key.in_the_header
    def request(self, target):
        request = super().request(target)
        request.full_url += "&api_key=" + self.key
        return request


class FourPages(Client):  # walk.every_page, again.after_a_broken_walk, again.after_a_refused_cursor
    pages = 0

    def next(self, page):
        self.pages += 1
        return super().next(page) if self.pages < 4 else None


class NothingIsError(Client):  # walk.no_calls
    def next(self, page):
        if not page["data"] and not page.get("has_more"):
            raise GivenUp("there are no calls")
        return super().next(page)


class FlagNeeded(Client):  # walk.ends_by_cursor
    def next(self, page):
        return super().next(page) if "has_more" in page else None


class CirclesOn(Client):  # walk.circle
    def is_known(self, cursor, seen):
        return False


class AllAgain(Client):  # again.overlap
    def after(self):
        return None


class WatermarkAtOnce(Client):  # again.after_a_broken_walk, again.after_a_refused_cursor
    def newest(self, calls):
        newest = super().newest(calls)
        self.state["watermark"] = newest
        self.save()
        return newest


class RefusedCursorIsEnd(Client):  # again.after_a_refused_cursor
    def page(self, after, cursor):
        try:
            return super().page(after, cursor)
        except GivenUp as why:
            if cursor is None or str(why) != "400":
                raise
            return {"data": [], "has_more": False}


class BadGatewayEnds(Client):  # retry.server_errors
    def is_worth_a_retry(self, status):
        return status != 502 and super().is_worth_a_retry(status)


class HalfAnswerEnds(Client):  # retry.broken
    def broken(self, error):
        if isinstance(error, http.client.IncompleteRead):
            raise GivenUp("half an answer")
        return super().broken(error)


class SlowPageEnds(Client):  # retry.slow
    def ask(self, target):
        began = time.monotonic()
        answer = super().ask(target)
        if self.tried == 1 and time.monotonic() - began > 0.9:
            raise GivenUp("too slow")
        return answer

    def request(self, target):
        self.tried = self.tried + 1 if target == getattr(self, "target", None) else 1
        self.target = target
        return super().request(target)


if __name__ == "__main__":
    client.main(globals()[sys.argv[1]])
