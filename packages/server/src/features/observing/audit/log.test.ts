import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { FakeServer, recordingLogger } from '../../../../test/fake-server.js'
import { type Actor, PROCESS } from '../../../kernel/identity/actor.js'
import type { Identity } from '../../../kernel/identity/index.js'
import type { AuditLevel } from '../../../kernel/ports/audit-levels.js'
import { AuditLog } from './log.js'

const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'

const verifier = {
  verify: (token: string) =>
    token === TOKEN
      ? Promise.reject(new WebMQError('E_TOKEN_INVALID'))
      : Promise.resolve<Identity>({ userId: token, grants: [{ keys: ['a.#'], allow: ['listen', 'publish'] }] }),
  close: () => undefined,
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-audit-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

type Line = Record<string, unknown>

function linesOf(file: string): Line[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
}

/** What alice and others do, up to the stop of the server. */
async function played(level: AuditLevel): Promise<Line[]> {
  const target = join(folder, 'audit.log')
  const audit = new AuditLog({ target, level, logger: recordingLogger().logger })
  const fake = await FakeServer.start({}, { audit, verifier })
  await fake.connect({ headers: { origin: `https://evil.example/?token=${TOKEN}` } })
  await fake.connect({ headers: { authorization: `Bearer ${TOKEN}` } })
  const alice = await fake.connect({ headers: { authorization: 'Bearer alice' } })
  alice.send({ verb: 'listen', id: '1', pattern: 'a.#' })
  alice.send({ verb: 'publish', id: '2', key: 'a.b', echo: true, payload: '"secret payload"' })
  alice.send({ verb: 'publish', id: '3', key: 'b', echo: true, payload: '"secret payload"' })
  alice.send({ verb: 'listen', id: '4', pattern: `b.${TOKEN}` })
  alice.send({ verb: 'unlisten', id: '5', pattern: 'a.#' })
  await fake.settled()
  alice.drop(1000, 'bye\n{"event":"connected"}')
  await fake.settled()
  await fake.server.stop()
  expect(audit.stats().droppedCount).toBe(0)
  return linesOf(target)
}

const who = { door: 'websocket', session: expect.stringMatching(/^[\w-]{8,}$/) as string, address: '127.0.0.1' }
const alice = { ...who, user: 'alice' }
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string

const REFUSALS = [
  {
    time,
    event: 'upgrade-refused',
    address: '127.0.0.1',
    origin: 'https://evil.example/?token=[redacted]',
    code: 'E_ORIGIN_FORBIDDEN',
  },
  { time, event: 'refused', ...who, action: 'connect', code: 'E_TOKEN_INVALID' },
  { time, event: 'refused', ...alice, action: 'publish', code: 'E_FORBIDDEN', target: 'b' },
  { time, event: 'refused', ...alice, action: 'listen', code: 'E_FORBIDDEN', target: 'b.[redacted]' },
]
const CONNECTIONS = [
  { time, event: 'connected', ...alice },
  {
    time,
    event: 'disconnected',
    ...alice,
    code: 1000,
    reason: 'bye\n{"event":"connected"}',
    durationMs: expect.any(Number) as number,
  },
]
const LISTENS = [
  { time, event: 'listened', ...alice, pattern: 'a.#' },
  { time, event: 'unlistened', ...alice, pattern: 'a.#' },
]

describe('AuditLog', () => {
  it('has one JSON line for each event, in order, without tokens and payloads', async () => {
    const lines = await played('listens')
    const [upgrade, token, publish, listen] = REFUSALS
    const [connected, disconnected] = CONNECTIONS
    const [listened, unlistened] = LISTENS
    expect(lines).toEqual([upgrade, token, connected, listened, publish, listen, unlistened, disconnected])
    expect(JSON.stringify(lines)).not.toMatch(/eyJ|secret payload/)
  })

  it('has fewer events at lower levels', async () => {
    expect(await played('refusals')).toEqual(REFUSALS)
    rmSync(join(folder, 'audit.log'))
    const [upgrade, token, ...others] = REFUSALS
    const [connected, disconnected] = CONNECTIONS
    expect(await played('connections')).toEqual([upgrade, token, connected, ...others, disconnected])
  })

  it('has the members that docs/security.md lists, and no others', () => {
    const page = readFileSync(new URL('../../../../../../docs/security.md', import.meta.url), 'utf8')
    const section = page.slice(page.indexOf('## Audit log'))
    const rows = [...section.matchAll(/^\| `([\w-]+)` \| ([^|]*) \|/gm)]
    const documented = new Map(rows.map(([, event = '', members = '']) => [event, members.match(/[\w]+/g) ?? []]))
    for (const line of [...REFUSALS, ...CONNECTIONS, ...LISTENS]) {
      const optional = new Set(['user', 'target', 'origin', 'address'])
      const listed = documented.get(line.event) ?? []
      const members = Object.keys(line).filter((name) => name !== 'time' && name !== 'event')
      expect(listed).toEqual(expect.arrayContaining(members))
      for (const name of listed) if (!optional.has(name)) expect(members).toContain(name)
    }
    const [, example = ''] = /```json\n(.*)\n```/.exec(section) ?? []
    const { time: at, event, ...members } = JSON.parse(example) as Line
    expect({ time: at }).toEqual({ time })
    expect(documented.get(String(event))).toEqual(Object.keys(members))
    expect([...documented.keys()].sort()).toEqual(
      [
        'connected',
        'disconnected',
        'listened',
        'omitted',
        'operated',
        'refused',
        'unlistened',
        'upgrade-refused',
      ].sort(),
    )
  })

  it('is a file for its owner alone, and is appended to', async () => {
    await played('refusals')
    const file = join(folder, 'audit.log')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await played('refusals')
    expect(linesOf(file)).toHaveLength(2 * REFUSALS.length)
  })

  it('goes on in a new file once a tool has moved the old one away', async () => {
    const target = join(folder, 'audit.log')
    const audit = new AuditLog({ target, level: 'connections', logger: recordingLogger().logger })
    const fake = await FakeServer.start({}, { audit })
    await fake.connect()
    await expect.poll(() => existsSync(target) && linesOf(target)).toHaveLength(1)
    renameSync(target, `${target}.1`)
    fake.server.reopenAuditLog()
    await fake.connect()
    await fake.server.stop()
    expect(linesOf(`${target}.1`).map(({ event }) => event)).toEqual(['connected'])
    expect(linesOf(target).map(({ event }) => event)).toEqual(['connected', 'disconnected', 'disconnected'])
  })

  it('refuses to start when its file cannot be written', async () => {
    const audit = new AuditLog({
      target: join(folder, 'no', 'such'),
      level: 'listens',
      logger: recordingLogger().logger,
    })
    await expect(FakeServer.start({}, { audit })).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
  })

  it.skipIf(!existsSync('/dev/full'))(
    'counts the lines that a full disk does not take, and delays nobody',
    async () => {
      const { logger, lines } = recordingLogger()
      const audit = new AuditLog({ target: '/dev/full', level: 'listens', logger })
      audit.open()
      const session: Actor = { ...PROCESS, door: 'websocket', id: 's', userId: 'u' }
      const { listened } = audit.observer()
      const pattern = 'p'.repeat(1_000)
      for (let count = 0; count < 5_000; count++) listened?.(session, pattern)
      await expect.poll(() => lines.length).toBe(1)
      expect(lines[0]).toMatchObject({ level: 'error', message: 'the audit log cannot be written' })
      const { droppedCount, writtenCount, waitingBytes } = audit.stats()
      expect(writtenCount).toBe(0)
      expect(droppedCount).toBeGreaterThan(500)
      expect(waitingBytes).toBeGreaterThan(4_000_000)
      await audit.close(500)
      expect(audit.stats()).toEqual({ writtenCount: 0, droppedCount: 5_000, waitingBytes: 0 })
      expect(lines[1]).toMatchObject({ message: 'lines of the audit log were lost', fields: { droppedCount: 5_000 } })
    },
  )

  it('writes few refusals of one session per second, and says how many it left out', async () => {
    let nowMs = 1_000
    const target = join(folder, 'audit.log')
    const audit = new AuditLog({ target, level: 'listens', logger: recordingLogger().logger, now: () => nowMs })
    audit.open()
    const { refused } = audit.observer()
    const session: Actor = { ...PROCESS, door: 'websocket', id: 'a' }
    for (let count = 0; count < 25; count++) refused?.(session, 'publish', 'E_FORBIDDEN', 'k')
    refused?.({ ...session, id: 'b' }, 'publish', 'E_FORBIDDEN', 'k')
    nowMs += 1_000
    refused?.(session, 'publish', 'E_FORBIDDEN', 'k')
    await audit.close(500)
    const lines = linesOf(target)
    expect(lines.filter(({ event }) => event === 'refused')).toHaveLength(12)
    expect(lines.filter(({ event }) => event === 'omitted')).toEqual([
      { time, event: 'omitted', session: 'a', count: 15 },
    ])
  })

  // Symptom: a client that listened and unlistened again and again wrote 450 GB a day. Cause: only refusals had a bound.
  it('writes all listens of a client that comes back, few of one that goes on, and says how many it left out', async () => {
    let nowMs = 1_000
    const target = join(folder, 'audit.log')
    const audit = new AuditLog({ target, level: 'listens', logger: recordingLogger().logger, now: () => nowMs })
    audit.open()
    const { listened, unlistened } = audit.observer()
    const session = (id: string, userId?: string, address = '203.0.113.9'): Actor => ({
      ...PROCESS,
      door: 'websocket',
      id,
      userId,
      address,
    })
    const churn = (actor: Actor, count: number) => {
      for (let times = 0; times < count; times++) (times % 2 === 0 ? listened : unlistened)?.(actor, 'k')
    }
    for (let connection = 0; connection < 100; connection++) churn(session(`a${connection}`, 'mallory'), 100)
    churn(session('b', 'mallory'), 500)
    churn(session('c', 'alice'), 100)
    churn(session('d'), 10_000)
    churn(session('e'), 3)
    await expect.poll(() => audit.stats().waitingBytes).toBe(0)
    // Many may be behind it.
    churn(session('f', undefined, '127.0.0.1'), 10_000)
    churn(session('g', undefined, '127.0.0.1'), 3)
    nowMs += 1_000
    churn(session('h', 'mallory'), 30)
    nowMs -= 3_600_000
    churn(session('i', 'mallory'), 10)
    await audit.close(2_000)
    const lines = linesOf(target)
    const written = (user: string | undefined, id?: string) =>
      lines.filter((line) => line.event !== 'omitted' && line.user === user && (id ?? line.session) === line.session)
        .length
    expect([written('mallory'), written('alice'), written(undefined, 'd'), written(undefined, 'e')]).toEqual([
      10_020, 100, 10_000, 0,
    ])
    expect(written(undefined, 'g')).toBe(3)
    expect(lines.filter(({ event }) => event === 'omitted')).toEqual([
      { time, event: 'omitted', user: 'mallory', action: 'listen', count: 500 },
      { time, event: 'omitted', address: '203.0.113.9', action: 'listen', count: 3 },
      { time, event: 'omitted', user: 'mallory', action: 'listen', count: 20 },
    ])
  })
})
