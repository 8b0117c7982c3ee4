"""Reads calls: all pages, and a copy that loses none. Copy this file into your program; it needs
Python 3.11 or later.

    api = Calls("https://api.example.com", os.environ["SERVICE_API_KEY"])
    for calls in api.pages():
        for call in calls:
            print(call["id"], call["summary"])
"""

import json
import random
import re
import time
from datetime import datetime, timedelta, timezone
from http.client import HTTPException
from urllib.parse import urlencode
from urllib.request import HTTPErrorProcessor, Request, build_opener

LAG = timedelta(minutes=1)  # a call can become visible this long after its `created_at`
LONGEST_BODY = 16 * 1024 * 1024


class ApiError(Exception):
    """A refusal. Decide by `code`; it is None if something else than the service answered."""

    def __init__(self, status, headers, body):
        try:
            error = json.loads(body)["error"]
            self.code, message = error["code"], error["message"]
        except (ValueError, KeyError, TypeError):
            self.code, message = None, "not an answer of the service"
        self.status = status
        self.is_transient = status in (408, 425, 429) or status >= 500 and status not in (501, 505)
        seconds = headers.get("Retry-After") or ""
        self.retry_after = min(int(seconds), 3600) if re.fullmatch("[0-9]{1,9}", seconds) else 0
        super().__init__(f"{status} {self.code}: {message} ({headers.get('X-Request-Id')})")


class _AnyStatus(HTTPErrorProcessor):
    """Follows no redirect, which would send the key elsewhere, and raises nothing."""

    def http_response(self, request, response):
        return response

    https_response = http_response


_OPENER = build_opener(_AnyStatus)


class Calls:
    def __init__(self, base, key, tries=5, time_limit=30):
        if not re.fullmatch("[!-~]+", key):  # an HTTP library would show it in its error
            raise ValueError("the key is empty, or has a space or a line end")
        self._url, self._key = base.rstrip("/") + "/v1/calls?", key
        self._tries, self._time_limit = tries, time_limit

    def pages(self, **bounds):
        """Yields lists of calls, newest first, each call once. Bounds: `created_after`, `created_before`."""
        seen, cursor, restarts = set(), {}, 0
        while True:
            try:
                page = self._ask({"limit": 100, **bounds, **cursor})
            except ApiError as error:
                if error.code != "invalid_cursor" or not cursor or restarts == 3:
                    raise
                cursor, restarts = {}, restarts + 1
                continue
            new = {call["id"]: call for call in page["data"] if call["id"] not in seen}
            seen.update(new)
            yield list(new.values())
            if not page["has_more"]:
                return
            cursor = {"cursor": page["next_cursor"] or ""}

    def sync(self, watermark, store):
        """Passes calls to `store(calls)`, page by page, and returns the next watermark. Begin with None.

        A call may come again: `store` inserts it by its id, or does nothing if the id is there.
        Keep the watermark that is returned once all pages are stored, and not earlier.
        """
        reached = [datetime.fromisoformat(watermark)] if watermark else []
        bounds = {"created_after": (reached[0] - LAG).isoformat()} if watermark else {}
        for number, calls in enumerate(self.pages(**bounds)):
            store(calls)
            if number == 0:  # a later page may have a call newer than others that the walk has passed
                now = datetime.now(timezone.utc)
                created = [datetime.fromisoformat(call["created_at"]) for call in calls]
                reached += [at for at in created if at <= now]
        return max(reached).isoformat() if reached else None

    def _ask(self, query):
        for tried in range(self._tries):
            try:
                status, headers, body = self._send(query)
                if status == 200:
                    return json.loads(body)
                problem = ApiError(status, headers, body)
                if not problem.is_transient:
                    break
            except (OSError, HTTPException, ValueError) as lost:  # no answer, or a part of one
                problem = lost
            if tried + 1 < self._tries:
                backoff = min(0.5 * 2**tried, 30) * random.uniform(1, 2)
                time.sleep(getattr(problem, "retry_after", 0) + backoff)
        raise problem

    def _send(self, query):
        until = time.monotonic() + self._time_limit
        request = Request(self._url + urlencode(query), headers={"Authorization": "Bearer " + self._key})
        with _OPENER.open(request, timeout=self._time_limit) as response:
            body = bytearray()
            while piece := response.read1(65536):
                body += piece
                if len(body) > LONGEST_BODY or time.monotonic() > until:
                    raise OSError("the answer is too long, or takes too long")
            return response.status, response.headers, body
