import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Hooks } from 'webmq-server'
import { Backend } from '../../packages/server/test/hooks/backend.js'
import { Serving } from '../../packages/server/test/hooks/serving.js'
import type { ProtocolClient } from '../../packages/server/test/protocol-client.js'
import { blocksFor } from './examples.js'

const { exampleOf, examplesOf } = blocksFor(import.meta.url)

const PAGE = 'hooks.md'
const SECRET = 'a secret of 32 bytes or more, as text'
const folder = mkdtempSync(join(tmpdir(), 'webmq-docs-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function moduleOf<T>(name: string): Promise<T> {
  const path = join(folder, `${name}.mjs`)
  writeFileSync(path, exampleOf(PAGE, name).code)
  return (await import(pathToFileURL(path).href)) as T
}

const jsonOf = (name: string) => JSON.parse(exampleOf(PAGE, name).code) as Record<string, unknown>

const publish = (client: ProtocolClient, key: string, payload: string) =>
  client.request((id) => ({ verb: 'publish', id, key, echo: true, payload }))

it('the module of hooks knows who connects, and checks what is published', async () => {
  const hooks = { ...(await moduleOf<Hooks>('hooks-module')) }
  await using serving = await Serving.start({ hooks })
  const client = await serving.connect({ headers: { cookie: 'sid=7' } })
  await client.request((id) => ({ verb: 'listen', id, pattern: 'chat.#' }))
  expect(await publish(client, 'chat.1', '{"text":"hi"}')).toMatchObject({ verb: 'ok' })
  expect(await publish(client, 'chat.1', '{}')).toMatchObject({ code: 'E_TEXT_MISSING' })
  expect(client.payloads).toEqual(['{"text":"hi","from":"alice"}'])
  const stranger = await serving.connect()
  expect(stranger.messages[0]).toMatchObject({ verb: 'error', code: 'E_SIGN_IN' })
})

it('the hook deliver hides what it says it hides', async () => {
  const hooks = { ...(await moduleOf<Hooks>('hooks-deliver')) }
  await using serving = await Serving.start({ hooks })
  const client = await serving.connect()
  await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
  await publish(client, 'internal.a', '1')
  await publish(client, 'orders.1', '{"total":5,"card":"4111"}')
  await publish(client, 'chat.1', '1')
  expect(client.payloads).toEqual(['{"total":5}', '1'])
})

it('a backend that takes events of occupancy as shown drops those that come late or again', async () => {
  const { take, occupied } = await moduleOf<{ take(event: object): void; occupied: Set<string> }>('occupancy')
  const events = [
    { event: 'vacated-all', generation: 10 },
    { event: 'occupied', pattern: 'a', generation: 20 },
    { event: 'occupied', pattern: 'b', generation: 30 },
    { event: 'vacated', pattern: 'a', generation: 40 },
    { event: 'occupied', pattern: 'a', generation: 20 },
    { event: 'vacated-all', generation: 10 },
  ]
  for (const event of events) take(event)
  expect([...occupied]).toEqual(['b'])
  take({ event: 'vacated-all', generation: 50 })
  take({ event: 'occupied', pattern: 'b', generation: 30 })
  expect([...occupied]).toEqual([])
})

it('questions and answers of the webhook look as shown', async () => {
  await using backend = await Backend.start()
  const question = (event: string) => ({
    ...jsonOf(`question-${event}`),
    session: expect.any(String),
    address: '127.0.0.1',
  })
  backend.answer = ({ json }) => {
    if (json.event === 'connect') return jsonOf('answer-connect')
    return json.payload.text === 'hi' ? jsonOf('answer-publish') : jsonOf('answer-refuse')
  }
  const webhook = { url: backend.url, events: ['connect', 'publish'] }
  await using serving = await Serving.start({ webhook })
  const client = await serving.connect()
  await client.request((id) => ({ verb: 'listen', id, pattern: 'chat.1' }))
  expect(await publish(client, 'chat.1', '{"text":"hi"}')).toMatchObject({ verb: 'ok' })
  expect(await publish(client, 'chat.1', '{"text":"no"}')).toMatchObject({ code: 'E_NO_CREDIT', message: 'pay first' })
  expect(client.payloads).toEqual(['{"text":"hi","checked":true}'])
  expect(backend.requests[0]?.json).toEqual(question('connect'))
  expect(backend.requests[1]?.json).toEqual(question('publish'))
})

describe('the verification of signatures', () => {
  let body = ''
  let headers: Record<string, string> = {}

  beforeAll(async () => {
    await using backend = await Backend.start()
    await using serving = await Serving.start({ webhook: { url: backend.url, secret: SECRET } })
    await serving.connect()
    body = backend.requests[0]?.body ?? ''
    headers = (backend.requests[0]?.headers ?? {}) as Record<string, string>
  })

  it('in Node accepts what is genuine alone', async () => {
    const { isGenuine } = await moduleOf<{
      isGenuine(secret: string, headers: Record<string, string>, body: string): boolean
    }>('verify-node')
    expect(isGenuine(SECRET, headers, body)).toBe(true)
    expect(isGenuine(SECRET, headers, `${body} `)).toBe(false)
    expect(isGenuine(`${SECRET}.`, headers, body)).toBe(false)
    expect(isGenuine(SECRET, { ...headers, 'webhook-timestamp': '1' }, body)).toBe(false)
    expect(isGenuine(SECRET, {}, body)).toBe(false)
  })

  /** A program that reads a JSON list from standard input, and prints 1 or 0. */
  const PROGRAMS: readonly [string, string, readonly string[], (code: string) => string][] = [
    [
      'python',
      'python3',
      ['-c'],
      (code) => `import json, sys\n${code}\nprint(1 if is_genuine(*json.load(sys.stdin)) else 0)`,
    ],
    [
      'php',
      'php',
      ['-r'],
      (code) => `${code}\necho (int) is_genuine(...json_decode(stream_get_contents(STDIN), true));`,
    ],
    ['ruby', 'ruby', ['-e'], (code) => `require 'json'\n${code}\nputs genuine?(*JSON.parse(STDIN.read)) ? 1 : 0`],
  ]

  it.each(PROGRAMS)('in %s accepts what is genuine alone', (name, program, args, build) => {
    if (spawnSync(program, ['--version']).error !== undefined) {
      console.warn(`docs/hooks.md: the example in ${name} was not run, because ${program} is not installed`)
      return
    }
    const source = build(exampleOf(PAGE, `verify-${name}`).code)
    const verify = (...input: unknown[]) => {
      const { stdout, stderr } = spawnSync(program, [...args, source], {
        input: JSON.stringify(input),
        encoding: 'utf8',
      })
      expect(stderr).toBe('')
      return stdout.trim()
    }
    expect(verify(SECRET, headers, body)).toBe('1')
    expect(verify(SECRET, headers, `${body} `)).toBe('0')
  })
})

it('every example is run', () => {
  expect(
    examplesOf(PAGE)
      .map(({ name }) => name)
      .sort(),
  ).toEqual([
    'answer-connect',
    'answer-publish',
    'answer-refuse',
    'hooks-deliver',
    'hooks-module',
    'occupancy',
    'question-connect',
    'question-publish',
    'verify-node',
    'verify-php',
    'verify-python',
    'verify-ruby',
  ])
})
