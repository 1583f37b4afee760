#!/usr/bin/env python3
"""Clients of a running server (`PROGRAM serve`, or another one with OpenAI's /v1/completions).

    clients.py URL --clients 64 --seconds 60 --prompt 32:2048 --answer 16:256
    clients.py URL --garbage --clients 16 --seconds 120 --pid PID
    clients.py URL --idle 5000 --clients 1 --seconds 20 --pid PID

Each client sends a request after the answer to the previous one: a prompt and an answer of random length (token ids, drawn
by --seed), streamed. The output is JSON: tokens per second, time to first token and gaps between tokens (seconds, percentiles).
With --long N, another client sends prompts of N tokens; its own figures do not count. With --idle N, N more connections, which have
received an answer, stay open and idle for half of the time; "gaps_idle" are the gaps in this half, and with --pid the memory of that
process is recorded before and after they were opened.

--garbage: incomplete bodies, slow readers, bytes that are not HTTP, JSON that is not a request, and clients that disconnect, in
addition to valid requests, all of which must be answered. With --pid, the memory of that process is recorded after a third of the time
and at the end.
"""

import argparse
import asyncio
import json
import random
import resource
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
    parser.add_argument("--vocabulary", type=int, default=500, help="ids are below this")
    parser.add_argument("--long", type=int, help="tokens of the prompts of one more client")
    parser.add_argument("--idle", type=int, help="connections that wait during the second half of the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--garbage", action="store_true")
    parser.add_argument("--pid", type=int)
    return parser.parse_args()


class Figures:
    def __init__(self):
        self.first, self.gaps, self.requests, self.tokens, self.prompt_tokens, self.errors = [], [], 0, 0, 0, []


def percentiles(values):
    values = sorted(values)
    at = lambda share: round(values[min(len(values) - 1, int(share * len(values)))], 5)
    return {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)} if values else None


class Client:
    def __init__(self, options, number):
        self.options, self.random = options, random.Random(f"{options.seed} {number}")
        self.host = urllib.parse.urlsplit(options.url)

    def connect(self):
        return asyncio.open_connection(self.host.hostname, self.host.port or 80)

    @staticmethod
    def post(body, close=True):
        return (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                f"{'Connection: close' if close else 'Connection: keep-alive'}\r\n\r\n").encode() + body

    def body(self, **fields):
        prompt = [self.random.randrange(self.options.vocabulary) for _ in range(self.random.randint(*self.options.prompt))]
        return json.dumps({"prompt": prompt, "max_tokens": self.random.randint(*self.options.answer), "ignore_eos": True,
                           "temperature": 0, "stream": True, **fields}).encode()

    async def stream(self, body, times):
        """One request to its end; its status. `times` gets when its tokens have come."""
        reader, writer = await self.connect()
        writer.write(self.post(body))
        status = int((await reader.readline()).split()[1])
        ended = status != 200
        while line := await reader.readline():
            if line.startswith(b"data: "):
                if line.startswith(b"data: [DONE]"):
                    ended = True
                elif b'"error"' in line:
                    raise AssertionError(line.decode())
                else:
                    times.append(time.monotonic())
        writer.close()
        if not ended:
            raise AssertionError("a stream has no end")
        if status == 200:
            times.pop()  # the last event contains the reason for the end
        return status

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
        """From `begin` to `end`, connections that have had an answer."""
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
        await asyncio.wait_for(self.rest(reader), 60)
        writer.close()

    async def wrong(self):
        text = self.random.choice([b"{", b"[]", b'{"prompt": 1}', b'{"prompt": [999999999]}', b'{"prompt": "a", "n": 0}', b"\xff\xfe",
                                   b'{"prompt": [1], "nonsense": 1}', b"[" * 5000, b'{"prompt": [' + b"1," * 100000 + b"1]}"])
        reader, writer = await self.connect()
        writer.write(self.post(text))
        answer = await asyncio.wait_for(self.rest(reader), 60)
        if not answer.startswith(b"HTTP/1.1 4"):
            raise AssertionError(f"{text[:40]} is answered with {answer[:200]}")
        writer.close()

    async def leave(self):
        reader, writer = await self.connect()
        writer.write(self.post(self.body(max_tokens=200)))
        for _ in range(self.random.randrange(6)):
            await reader.readline()
        writer.transport.abort()

    async def slow(self):
        """Reads a byte at a time."""
        reader, writer = await self.connect()
        writer.write(self.post(self.body(max_tokens=50)))
        for _ in range(20):
            await reader.read(1)
            await asyncio.sleep(0.02)
        writer.transport.abort()

    async def good(self):
        status = await self.request()
        if status not in (200, 429):
            raise AssertionError(f"a request is answered with {status}")

    @staticmethod
    async def rest(reader):
        received = b""
        while piece := await reader.read(65536):
            received += piece
        return received

    async def misbehave(self, counts, end):
        while time.monotonic() < end:
            what = self.random.choice([self.half_sent, self.noise, self.wrong, self.leave, self.slow, self.good, self.good])
            try:
                await what()
            except (ConnectionResetError, BrokenPipeError):
                if what == self.good:
                    raise
            counts[what.__name__] = counts.get(what.__name__, 0) + 1


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


async def main():
    options = arguments()
    clients = [Client(options, number) for number in range(options.clients)]
    start = time.monotonic()
    end = start + options.seconds
    if options.garbage:
        counts, memory = {}, []

        async def watch():
            await asyncio.sleep(options.seconds / 3)
            memory.append(resident(options.pid))

        await asyncio.gather(*(client.misbehave(counts, end) for client in clients), *([watch()] if options.pid else []))
        if options.pid:
            memory.append(resident(options.pid))
        result = {"seconds": round(time.monotonic() - start, 1), "done": counts, "resident_bytes": memory}
    else:
        figures = Figures()
        tasks = [client.loop(figures, end) for client in clients]
        if options.long:
            tasks.append(Client(options, "long").long(end))
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
        if options.idle:
            result["gaps_idle"] = percentiles([gap for when, gap in figures.gaps if when >= half])
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    asyncio.run(main())
