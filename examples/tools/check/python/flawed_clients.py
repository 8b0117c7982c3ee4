"""Clients with one flaw each, for `check client`: python3 flawed_clients.py FLAW"""
import datetime, sys, urllib.request
import client
from client import Client, GivenUp


class CursorUnescaped(Client):
    def query(self, given):
        return "&".join(f"{name}={value.replace('&', '%26')}" for name, value in given.items())


class StopsAtEmptyPage(Client):
    def next(self, page):
        return super().next(page) if page["data"] else None


class IgnoresFlag(Client):
    def next(self, page):
        return page.get("next_cursor") or super().next(page)


class NoCursorIsEnd(Client):
    def next(self, page):
        return super().next(page) if page.get("next_cursor") else None


class StopsAtUnreadable(Client):
    def take(self, call):
        if not self.is_readable(call):
            raise GivenUp("a call that cannot be read")
        super().take(call)


class WatermarkIsNow(Client):
    def newest(self, calls):
        return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


class KnowsNothing(Client):
    def __init__(self):
        super().__init__()
        self.state["known"] = {}


class AsksTooEarly(Client):
    def retry_after(self, text):
        return 0 if text and text.isdecimal() else super().retry_after(text)


class IgnoresDates(Client):
    def retry_after(self, text):
        return super().retry_after(text) if text and text.isdecimal() else 0


class RepeatsRefusals(Client):
    def is_worth_a_retry(self, status):
        return status == 401 or super().is_worth_a_retry(status)


class FollowsRedirects(Client):
    def handlers(self):
        return [urllib.request.HTTPRedirectHandler()]


class KeyInUrl(Client):
    def request(self, target):
        request = super().request(target)
        request.full_url += "&api_key=" + self.key
        return request


if __name__ == "__main__":
    client.main(globals()[sys.argv[1]])
