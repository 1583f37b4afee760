#!/usr/bin/env python3
"""Clients of a running server (`PROGRAM serve`, or another one with OpenAI's /v1/completions).

    clients.py URL --clients 64 --seconds 60 --prompt 32:2048 --answer 16:256
    clients.py URL --garbage --clients 16 --seconds 120 --pid PID
    clients.py URL --idle 5000 --clients 1 --seconds 20 --pid PID

Each client sends a request after the answer to the previous one: a prompt and an answer of random length (token ids, drawn
by --seed), streamed. The output is JSON: tokens per second, time to first token and gaps between tokens (seconds, percentiles).
With --long N, another client sends prompts of N tokens; its own figures do not count. With --pad N, bodies have at least N bytes, by spaces.
With --huge N, N more clients send texts of 15 MB to --huge-path, whose figures do not count either; "huge" counts them. With --idle N, N more connections, which have
received an answer, stay open and idle for half of the time; "gaps_idle" are the gaps from when all are open. With --pid, the memory of
that process is recorded before and after they were opened.

--garbage, for programs with a chat template: incomplete bodies, bytes that are not HTTP, JSON that is not a request, and clients that
disconnect, in addition to valid requests of all kinds, all of which must be answered, and always with the same answer, whatever else is
computed at the same time. Two more clients read long answers slowly: one reads 1 KB per second, the other nothing for --unread-seconds;
"slow" counts how their streams end. With --pid, the memory of that process is recorded every 60th of the time.
"""

import argparse
import asyncio
import json
import random
import resource
import socket
import sys
import time
import urllib.parse


def span(text):
    low, _, high = text.partition(":")
    return int(low), int(high or low)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--prompt", type=span, default=(32, 256))
    parser.add_argument("--answer", type=span, default=(16, 64))
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--vocabulary", type=int, default=500, help="ids are below this")
    parser.add_argument("--long", type=int, help="tokens of the prompts of one more client")
    parser.add_argument("--pad", type=int, default=0, help="bytes of a body, at least")
    parser.add_argument("--huge", type=int, default=0, help="more clients that send texts of 15 MB")
    parser.add_argument("--huge-path", default="/v1/completions", help="also /tokenize")
    parser.add_argument("--idle", type=int, help="connections that wait during the second half of the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--garbage", action="store_true")
    parser.add_argument("--unread-seconds", type=float, default=60)
    parser.add_argument("--pid", type=int)
    return parser.parse_args()


class Figures:
    def __init__(self):
        self.first, self.gaps, self.requests, self.tokens, self.prompt_tokens, self.errors = [], [], 0, 0, 0, []


def percentiles(values):
    values = sorted(values)
    at = lambda share: round(values[min(len(values) - 1, int(share * len(values)))], 5)
    return {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)} if values else None


#: Seconds for a reply. It is sent at once, except on a very busy machine.
PATIENCE = 600
#: The answers to the valid requests of --garbage, by request.
answers = {}


class Client:
    def __init__(self, options, number):
        self.options, self.random = options, random.Random(f"{options.seed} {number}")
        self.host = urllib.parse.urlsplit(options.url)

    def connect(self):
        return asyncio.open_connection(self.host.hostname, self.host.port or 80)

    @staticmethod
    def post(body, close=True, path="/v1/completions"):
        return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                f"{'Connection: close' if close else 'Connection: keep-alive'}\r\n\r\n").encode() + body

    def body(self, **fields):
        prompt = [self.random.randrange(self.options.vocabulary) for _ in range(self.random.randint(*self.options.prompt))]
        asked = {"prompt": prompt, "max_tokens": self.random.randint(*self.options.answer), "ignore_eos": True,
                 "temperature": getattr(self.options, "temperature", 0), "stream": True, **fields}
        if asked["stream"]:
            asked["stream_options"] = {"include_usage": True}
        return json.dumps(asked).encode().ljust(getattr(self.options, "pad", 0))

    async def stream(self, body, times):
        """One request to its end; its status. `times` receives the times at which text arrived. The answer must have as many tokens as are asked
        for, by the server's count: one event may have the text of several tokens."""
        asked, usage = json.loads(body), {}
        reader, writer = await self.connect()
        writer.write(self.post(body))
        status = int((await reader.readline()).split()[1])
        ended = status != 200
        while line := await reader.readline():
            if line.startswith(b"data: "):
                if line.startswith(b"data: [DONE]"):
                    ended = True
                    continue
                arrived, event = time.monotonic(), json.loads(line[6:])
                if "error" in event:
                    raise AssertionError(line.decode())
                usage = event.get("usage") or usage
                # The event with the finish reason contains no token.
                if event["choices"] and event["choices"][0]["finish_reason"] is None:
                    times.append(arrived)
        writer.close()
        if not ended:
            raise AssertionError("a stream has no end")
        if status == 200 and usage.get("completion_tokens") != asked["max_tokens"]:
            raise AssertionError(f"{asked['max_tokens']} tokens are asked for, the usage is {usage}")
        return status

    async def reply(self, body, path="/v1/completions"):
        """The status and the body of the reply to a request, streamed or not."""
        reader, writer = await self.connect()
        writer.write(self.post(body, path=path))
        head, _, received = (await self.rest(reader)).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), received

    async def request(self, figures=None):
        body, times, start = self.body(), [], time.monotonic()
        status = await self.stream(body, times)
        if figures and status == 200:
            asked = json.loads(body)
            figures.requests += 1
            figures.tokens += asked["max_tokens"]
            figures.prompt_tokens += len(asked["prompt"])
            figures.first.append(times[0] - start)
            figures.gaps += [(late, late - early) for early, late in zip(times, times[1:])]
        elif figures:
            figures.errors.append(status)
        return status

    async def loop(self, figures, end):
        while time.monotonic() < end:
            await self.request(figures)

    async def wait_idle(self, count, begin, end, notes):
        """Keeps connections that have received an answer open from `begin` to `end`."""
        await asyncio.sleep(begin - time.monotonic())
        if self.options.pid:
            notes["resident_bytes"] = [resident(self.options.pid)]
        opened = []
        for _ in range(count):
            reader, writer = await self.connect()
            opened.append((reader, writer))
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status = await reader.readline()
            length = 0
            while (line := await reader.readline()).strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            if not status.startswith(b"HTTP/1.1 200"):
                raise AssertionError(f"connection {len(opened)} is answered with {status}")
        notes["idle"], notes["opened_after"] = len(opened), round(time.monotonic() - begin, 2)
        if self.options.pid:
            notes["resident_bytes"].append(resident(self.options.pid))
        await asyncio.sleep(max(0, end - time.monotonic()))
        closed = sum(reader.at_eof() for reader, _ in opened)
        if closed:
            raise AssertionError(f"{closed} of {count} connections were closed")
        for _, writer in opened:
            writer.close()

    async def long(self, end):
        while time.monotonic() < end:
            prompt = [self.random.randrange(self.options.vocabulary) for _ in range(self.options.long)]
            await self.stream(self.body(prompt=prompt, max_tokens=1), [])

    async def huge(self, request, end, statuses):
        while time.monotonic() < end:
            reader, writer = await self.connect()
            for begin in range(0, len(request), 1 << 18):  # other clients proceed in between
                writer.write(request[begin:begin + (1 << 18)])
                await writer.drain()
            status = int((await self.rest(reader)).split(maxsplit=2)[1])
            writer.close()
            statuses[status] = statuses.get(status, 0) + 1

    # Misbehavior.

    async def half_sent(self):
        _, writer = await self.connect()
        whole = self.post(self.body())
        writer.write(whole[:self.random.randrange(1, len(whole))])
        await writer.drain()
        await asyncio.sleep(self.random.random() / 4)
        writer.close()

    async def noise(self):
        reader, writer = await self.connect()
        writer.write(self.random.randbytes(self.random.randrange(1, 4000)) + b"\r\n\r\n")
        await asyncio.wait_for(self.rest(reader), PATIENCE)
        writer.close()

    async def wrong(self):
        text = self.random.choice([b"{", b"[]", b'{"prompt": 1}', b'{"prompt": [999999999]}', b'{"prompt": "a", "n": 0}', b"\xff\xfe",
                                   b'{"prompt": [1], "nonsense": 1}', b"[" * 5000, b'{"prompt": [' + b"1," * 100000 + b"1]}"])
        reader, writer = await self.connect()
        writer.write(self.post(text))
        answer = await asyncio.wait_for(self.rest(reader), PATIENCE)
        if not answer.startswith(b"HTTP/1.1 4"):
            raise AssertionError(f"{text[:40]} is answered with {answer[:200]}")
        writer.close()

    async def leave(self):
        reader, writer = await self.connect()
        writer.write(self.post(self.body(max_tokens=200)))
        for _ in range(self.random.randrange(6)):
            await reader.readline()
        writer.transport.abort()

    async def begin_long(self):
        """A socket that has received the beginning of a long answer. Only some KB wait in the kernel's buffers, the rest in the server."""
        loop, own = asyncio.get_running_loop(), socket.socket()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        own.setblocking(False)
        await loop.sock_connect(own, (self.host.hostname, self.host.port or 80))
        await loop.sock_sendall(own, self.post(self.body(prompt=[7], max_tokens=900, n=16, logprobs=5)))
        begin = await self.receive(own, 16)
        if not begin.startswith(b"HTTP/1.1 200"):
            raise AssertionError(f"a slow reader is answered with {begin}")
        return own

    @staticmethod
    async def receive(own, count):
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(own, count), PATIENCE)
        except ConnectionResetError:
            return b""

    async def trickle(self, ends, end):
        """Reads 1 KB of a long answer per second."""
        while time.monotonic() < end:
            with await self.begin_long() as own:
                while (piece := await self.receive(own, 1024)) and time.monotonic() < end:
                    await asyncio.sleep(1)
            ends.append("trickle " + ("left" if piece else "disconnected"))

    async def unread(self, ends, end):
        """Reads nothing of a long answer for a time, and then what was sent until then."""
        while time.monotonic() < end:
            with await self.begin_long() as own:
                await asyncio.sleep(self.options.unread_seconds)
                received = b""
                while piece := await self.receive(own, 65536):
                    received = received[-20:] + piece
            ends.append("unread " + ("complete" if b"[DONE]" in received else "disconnected"))

    async def good(self):
        """One of 200 requests, which differ in their fields."""
        number = self.random.randrange(200)
        path, asked = request_of_soak(number, self.options)
        # Some bodies are so large that they are parsed on a thread of their own.
        status, body = await self.reply(json.dumps(asked).encode() + b" " * (100000 if number % 10 == 0 else 0), path)
        if status != 200:  # nor 429: the queue has room for all clients
            raise AssertionError(f"{path} {asked} is answered with {status}: {body.decode()}")
        answer = answer_of(body.decode(), asked)
        if answers.setdefault(number, answer) != answer:
            raise AssertionError(f"{path} {asked} is answered with {answer} after {answers[number]}")

    @staticmethod
    async def rest(reader):
        received = b""
        while piece := await reader.read(65536):
            received += piece
        return received

    async def misbehave(self, number, counts, end):
        kinds = [self.half_sent, self.noise, self.wrong, self.leave, self.good]
        # Five clients do each of them, even if there is time for nothing more.
        what = kinds[number % len(kinds)]
        while time.monotonic() < end or what is not None:
            what = what or self.random.choice([*kinds, self.good])
            try:
                await what()
            except (ConnectionResetError, BrokenPipeError):
                if what == self.good:
                    raise
            counts[what.__name__] = counts.get(what.__name__, 0) + 1
            what = None


def request_of_soak(number, options):
    """(path, JSON) of a valid request, whose answer is determined."""
    source = random.Random(f"{options.seed} request {number}")
    tokens = lambda: [source.randrange(options.vocabulary) for _ in range(source.randint(*options.prompt))]
    asked = {"seed": number, "temperature": source.choice([0, 0, 1]), "max_tokens": source.randint(*options.answer),
             "n": source.choice([1, 1, 1, 3]), "stream": source.random() < 0.6, "ignore_eos": source.random() < 0.5}
    for field, value in (("top_p", 0.9), ("top_k", 40), ("min_p", 0.05), ("presence_penalty", 1), ("frequency_penalty", 0.5),
                         ("repetition_penalty", 1.1), ("stop", ["e", "42"]), ("logit_bias", {"5": -100, "7": 2})):
        if source.random() < 0.2:
            asked[field] = value
    if asked["stream"]:
        asked["stream_options"] = {"include_usage": True}
    if number % 4 == 0:
        return "/v1/chat/completions", {**asked, "messages": [{"role": "user", "content": f"count from {number} to {number + 9}"}],
                                        "logprobs": source.random() < 0.5}
    if source.random() < 0.3:
        asked["logprobs"] = 2
    # Many have the same beginning, of which the cache may hold a part.
    prompt = [7] * 100 * source.randrange(3) + tokens()
    return "/v1/completions", {**asked, "prompt": [prompt, "a"] if source.random() < 0.1 else prompt}


def answer_of(body, asked):
    """What is determined of an answer: the texts and reasons of its choices, by index, and the counts of tokens."""
    if not asked["stream"]:
        events = [json.loads(body)]
    else:
        # The body is chunked: a size, an event, and an empty line.
        lines = [line.removeprefix("data: ") for line in body.replace("\r\n", "\n").split("\n") if line.startswith("data: ")]
        if lines.pop() != "[DONE]":
            raise AssertionError(f"{asked} is answered with {body}")
        events = [json.loads(line) for line in lines]
    choices = {}
    for event in events:
        if "error" in event:
            raise AssertionError(f"{asked} is answered with {event}")
        for choice in event["choices"]:
            text, logprobs, reason = choices.get(choice["index"], ("", [], None))
            said = choice.get("message") or choice.get("delta") or {"content": choice.get("text")}
            found = choice["logprobs"] or {}
            more = found.get("content", found.get("token_logprobs", []))
            choices[choice["index"]] = text + (said.get("content") or ""), logprobs + more, choice["finish_reason"] or reason
    usage = events[-1]["usage"]
    return choices, usage["prompt_tokens"], usage["completion_tokens"]


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


async def main():
    options = arguments()
    clients = [Client(options, number) for number in range(options.clients)]
    field = "content" if options.huge_path == "/tokenize" else "prompt"
    huge = Client.post(json.dumps({field: "a b " * 3750000}).encode(), path=options.huge_path) if options.huge else b""
    start = time.monotonic()
    end = start + options.seconds
    if options.garbage:
        counts, memory, slow = {}, [], []

        async def watch():
            while time.monotonic() < end:
                await asyncio.sleep(options.seconds / 60)
                memory.append(resident(options.pid))

        await asyncio.gather(*(client.misbehave(number, counts, end) for number, client in enumerate(clients)),
                             Client(options, "trickle").trickle(slow, end), Client(options, "unread").unread(slow, end),
                             *([watch()] if options.pid else []))
        result = {"seconds": round(time.monotonic() - start, 1), "done": counts, "different_requests": len(answers),
                  "slow": {how: slow.count(how) for how in sorted(set(slow))}, "resident_bytes": memory}
    else:
        figures = Figures()
        tasks = [client.loop(figures, end) for client in clients]
        if options.long:
            tasks.append(Client(options, "long").long(end))
        statuses = {}
        tasks += [Client(options, f"huge {number}").huge(huge, end, statuses) for number in range(options.huge)]
        notes, half = {}, start + options.seconds / 2
        if options.idle:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, options.idle + 200)), hard))
            tasks.append(Client(options, "idle").wait_idle(options.idle, half, end, notes))
        await asyncio.gather(*tasks)
        seconds = time.monotonic() - start
        result = {"seconds": round(seconds, 1), "requests": figures.requests, "errors": figures.errors, "prompt_tokens": figures.prompt_tokens,
                  "tokens_per_second": round(figures.tokens / seconds, 1), "first_token": percentiles(figures.first),
                  "gaps": percentiles([gap for when, gap in figures.gaps if not options.idle or when < half]), **notes}
        if options.huge:
            result["huge"] = statuses
        if options.idle:
            result["gaps_idle"] = percentiles([gap for when, gap in figures.gaps if when >= half + notes["opened_after"]])
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    asyncio.run(main())
