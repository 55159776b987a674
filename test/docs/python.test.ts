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

/** Runs parts of a block in a coroutine, each to its end, or so long as it waits for more. */
const PARTS = `
import asyncio, sys, textwrap
import webmq

async def model():
    for word in ("Once ", "upon "):
        yield word

async def handle(payload, key):
    print("handled", key, payload)

async def main():
    async with webmq.Client(sys.argv[1]) as client:
        scope = {"webmq": webmq, "client": client, "model": model, "handle": handle, "saved": None}
        for part in sys.argv[2:]:
            exec("async def part(saved):\\n" + textwrap.indent(part, "    "), scope)
            task = asyncio.create_task(scope["part"](scope["saved"]))
            for key in ("prices.eur", "chat.1", "jobs.1"):
                await asyncio.sleep(0.3)
                await client.publish(key, 7)
            done, _ = await asyncio.wait([task], timeout=1)
            if done:
                task.result()
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
  const parts = others.split('\n\n')
  expect(parts).toHaveLength(5)
  const printed = await call(PARTS, url, `${listening}\n        print('saved', saved)`, ...parts, stream)
  expect(printed).toMatch(/^saved \S+:/m)
  expect(printed).toContain("{'prices.eur': 7}")
  expect(printed).toContain('handled jobs.1 7')
  expect(printed).toContain('Once upon ')
})
