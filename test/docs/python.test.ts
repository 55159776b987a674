import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createServer } from 'webmq-server'
import { findPython } from '../clients/python.js'
import { blocksFor } from './examples.js'

const PAGE = 'clients/python/README.md'
const TEST_MS = 120_000
const { exampleOf } = blocksFor(import.meta.url)
const run = promisify(execFile)
const python = await findPython()
const server = createServer({ port: 0, logLevel: 'silent', history: ['chat.#=100,1h'], retain: ['prices.*'] })
const examples = ['first', 'listening', 'others', 'stream'].map((name) => exampleOf(PAGE, name).code)
let url = ''

beforeAll(async () => {
  const { port } = await server.start()
  url = `ws://127.0.0.1:${port}/ws`
})
afterAll(() => server.stop({ drainMs: 0 }))

/** Runs a program that goes on for ever until it has printed something. */
const UNTIL_PRINTED = `
import asyncio, builtins, os, sys

class Printed(BaseException): pass

def _print(*values, **options):
    sys.stdout.write(" ".join(map(str, values)) + options.get("end", "\\n"))
    sys.stdout.flush()
    raise Printed

builtins.print = _print
try:
    exec(compile(sys.argv[1], "README.md", "exec"), {"__name__": "__main__"})
except Printed:
    pass
`

/** Runs parts of a block in a coroutine, each until it has printed what is expected; `''` is a part that ends, or is left. */
const PARTS = `
import asyncio, builtins, sys, textwrap
import webmq

said = []

def say(*values, end="\\n", **_):
    said.append(" ".join(map(str, values)) + end)
    sys.stdout.write(said[-1])

builtins.print = say

async def model():
    for word in ("Once ", "upon "):
        yield word

async def handle(payload, key):
    print("handled", key, payload)

async def main():
    async with webmq.Client(sys.argv[1]) as client:
        scope = {"webmq": webmq, "client": client, "model": model, "handle": handle, "saved": None}
        for part, expected in zip(sys.argv[2::2], sys.argv[3::2]):
            exec("async def part(saved):\\n" + textwrap.indent(part, "    "), scope)
            task = asyncio.create_task(scope["part"](scope["saved"]))
            before = len(said)
            # Again and again: a listen or a membership takes its time until it is live.
            for _ in range(600 if expected else 20):
                for key in ("prices.eur", "chat.1", "jobs.1"):
                    await client.publish(key, 7)
                await asyncio.sleep(0.1)
                if task.done():
                    task.result()
                if expected in "".join(said[before:]) if expected else task.done():
                    break
            task.cancel()

asyncio.run(main())
`

const env = python.program === undefined ? {} : python.env
const call = async (...args: string[]) =>
  (await run(python.program ?? '', ['-c', ...args], { env, timeout: TEST_MS })).stdout

it.skipIf(python.program === undefined)('the first program gets its own message', { timeout: TEST_MS }, async () => {
  const [first = ''] = examples
  expect(await call(UNTIL_PRINTED, first.replace('ws://localhost:8080/ws', url))).toBe(
    "chat.42.message {'text': 'hi'}\n",
  )
})

it.skipIf(python.program === undefined)('the other examples do what they say', { timeout: TEST_MS }, async () => {
  const [, listening = '', others = '', stream = ''] = examples
  const [state = '', history = '', presence = '', requests = '', work = '', ...more] = others.split('\n\n')
  expect([work, more]).toEqual([expect.stringContaining('client.work('), []])
  const parts = [
    [`${listening}\n        print('saved', saved)`, 'saved '],
    [state, "{'prices.eur': 7}"],
    [history, ''],
    [presence, ''],
    [requests, ''],
    [work, 'handled jobs.1 7'],
    [stream, 'Once upon '],
  ]
  const printed = await call(PARTS, url, ...parts.flat())
  for (const [, expected = ''] of parts) expect(printed).toContain(expected)
  expect(printed).toMatch(/^saved \S+:/m)
})
