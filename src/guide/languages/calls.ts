// Reads calls: all pages, and a copy that loses none. Copy this file into your program. It needs
// Node 18 or later, Deno or Bun, and no package.
//
//     const api = new Calls("https://api.example.com", process.env.SERVICE_API_KEY!);
//     for await (const calls of api.pages()) {
//       for (const call of calls) console.log(call.id, call.summary);
//     }

const LAG = 60_000; // a call can become visible this long after its `created_at`
const LONGEST_BODY = 16 * 1024 * 1024;

export type Call = {
  id: string;
  caller: { contact_id: string | null; phone_number: string | null; display_name: string | null };
  started_at: string;
  answered_at: string | null;
  ended_at: string | null;
  duration_seconds: number | null;
  summary: string | null;
  appointment_ids: string[];
  created_at: string;
};

export type Bounds = { created_after?: string; created_before?: string };

type Page = { data: Call[]; next_cursor: string | null; has_more: boolean };

/** A refusal. Decide by `code`; it is undefined if something else than the service answered. */
export class ApiError extends Error {
  status: number;
  code: string | undefined;
  isTransient: boolean;
  retryAfter: number;

  constructor(status: number, headers: Headers, body: string) {
    let error;
    try {
      error = JSON.parse(body)?.error;
    } catch {} // not JSON
    super(`${status} ${error?.code}: ${error?.message} (${headers.get("X-Request-Id")})`);
    this.status = status;
    this.code = error?.code;
    this.isTransient = [408, 425, 429].includes(status) || (status >= 500 && ![501, 505].includes(status));
    const seconds = headers.get("Retry-After") ?? "";
    this.retryAfter = /^[0-9]{1,9}$/.test(seconds) ? Math.min(Number(seconds), 3600) : 0;
  }
}

export class Calls {
  #url: string;
  #key: string;
  #tries: number;
  #timeLimit: number;

  constructor(base: string, key: string, tries = 5, timeLimit = 30) {
    // fetch would show it in its error.
    if (!/^[!-~]+$/.test(key)) throw new Error("the key is empty, or has a space or a line end");
    this.#url = `${base.replace(/\/+$/, "")}/v1/calls?`;
    this.#key = key;
    this.#tries = tries;
    this.#timeLimit = timeLimit;
  }

  /** Yields arrays of calls, newest first, each call once. */
  async *pages(bounds: Bounds = {}): AsyncGenerator<Call[]> {
    const seen = new Set<string>();
    let cursor = {};
    for (let restarts = 0; ; ) {
      let page: Page;
      try {
        page = await this.#ask({ limit: "100", ...bounds, ...cursor });
      } catch (error) {
        const refused = error instanceof ApiError && error.code === "invalid_cursor";
        if (!refused || !("cursor" in cursor) || restarts === 3) throw error;
        cursor = {};
        restarts += 1;
        continue;
      }
      const fresh = page.data.filter((call) => !seen.has(call.id));
      fresh.forEach((call) => seen.add(call.id));
      yield fresh;
      if (page.has_more === false) return;
      cursor = { cursor: page.next_cursor ?? "" };
    }
  }

  /**
   * Passes calls to `store`, page by page, and returns the next watermark. Begin with null.
   *
   * A call may come again: `store` inserts it by its id, or does nothing if the id is there.
   * Keep the watermark that is returned once all pages are stored, and not earlier.
   */
  async sync(watermark: string | null, store: (calls: Call[]) => Promise<void>): Promise<string | null> {
    const before = watermark === null ? [] : [Date.parse(watermark)];
    const bounds = before.map((at) => ({ created_after: new Date(at - LAG).toISOString() }))[0];
    let reached: number[] | undefined;
    for await (const calls of this.pages(bounds)) {
      await store(calls);
      // A later page may have a call newer than others that the walk has passed.
      reached ??= calls.map((call) => Date.parse(call.created_at)).filter((at) => at <= Date.now());
    }
    const all = [...before, ...(reached ?? [])];
    return all.length === 0 ? null : new Date(Math.max(...all)).toISOString();
  }

  async #ask(query: Record<string, string>): Promise<Page> {
    for (let tried = 1; ; tried++) {
      let problem: unknown;
      try {
        const response = await fetch(this.#url + new URLSearchParams(query), {
          headers: { Authorization: `Bearer ${this.#key}` },
          redirect: "manual", // a redirect would send the key elsewhere
          signal: AbortSignal.timeout(this.#timeLimit * 1000),
        });
        const body = await read(response);
        if (response.status === 200) return JSON.parse(body);
        problem = new ApiError(response.status, response.headers, body);
      } catch (lost) {
        problem = lost; // no answer, or a part of one
      }
      const refusal = problem instanceof ApiError ? problem : undefined;
      if (tried >= this.#tries || refusal?.isTransient === false) throw problem;
      const backoff = Math.min(2 ** (tried - 2), 30) * (1 + Math.random());
      await new Promise((resolve) => setTimeout(resolve, 1000 * ((refusal?.retryAfter ?? 0) + backoff)));
    }
  }
}

async function read(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let [text, length] = ["", 0];
  for (let piece; (piece = await reader?.read()) && !piece.done; ) {
    length += piece.value.length;
    if (length > LONGEST_BODY) {
      await reader?.cancel();
      throw new Error("the answer is too long");
    }
    text += decoder.decode(piece.value, { stream: true });
  }
  return text + decoder.decode();
}
