import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fingerprintOfSource } from '../src/adapters/brokers/log/fingerprint.js'
import { RolledUp } from '../src/adapters/brokers/log/rolled-up.js'
import { TextUpgradeRequest } from '../src/adapters/transports/upgrade/text-request.js'
import { NodeChannel } from '../src/features/nodes/node-channel.js'
import { encodeContent, encodePart } from '../src/features/nodes/node-message.js'
import { mayPublish } from '../src/kernel/identity/access.js'
import { PlainTokens } from '../src/kernel/identity/plain-token.js'
import { createTokenVerifier } from '../src/kernel/identity/token-verifier.js'
import { TrustedProxies } from '../src/kernel/identity/trusted-proxies.js'
import { inboundDefect } from '../src/kernel/ports/inbound-check.js'
import { Drains } from '../src/kernel/replay/drains.js'
import { ReplaySender } from '../src/kernel/replay/sender.js'
import { ApiServer, SECRET } from './api-server.js'
import { HELD_FIELDS } from './held-fields.js'
import { asking, growthOf, growthOfFirst, growthOfRounds, MAX_GROWTH_BYTES, usedBytes } from './used-bytes.js'

/** The server's own, and those of its brokers and its outbox, whose names begin with the package. */
const SOURCES = [
  ['', fileURLToPath(new URL('../src', import.meta.url))],
  ...['broker-nats', 'broker-rabbitmq', 'broker-redis', 'outbox-postgres'].map(
    (name) => [`${name}/`, fileURLToPath(new URL(`../../${name}/src`, import.meta.url))] as const,
  ),
] as const

/** Everything of a module that may grow, and why it does not. Types that begin with `Readonly` cannot. */
const HELD: Readonly<Record<string, string>> = {
  'kernel/base/answer-early.ts prepared': 'ends with each answer',
  'kernel/base/log-bug.ts paces': 'ends with each logger; a few messages each',
  'adapters/brokers/log/fingerprint.ts nodeHashes': 'cleared with 1,024',
  'adapters/brokers/log/fingerprint.ts lastNode': 'one',
  'adapters/brokers/log/fingerprint.ts lastNodeHash': 'one',
  'broker-nats/stream-message.ts lead': 'one',
  'broker-rabbitmq/log-record.ts lastHeader': 'one',
  'adapters/brokers/remote/envelope.ts knownNodes': '256 places',
  'adapters/brokers/remote/envelope.ts ownNode': 'one',
  'kernel/base/line-writer.ts writers': 'open descriptors: two, and an audit log for each server',
  'kernel/base/line-writer.ts standard': 'two',
  'doors/cli/early-signals.ts early': 'three',
  'doors/cli/early-signals.ts receive': 'one',
  'doors/cli/option-sources.ts readPipes': 'options that name pipes',
  'kernel/base/logger.ts ownLoggers': 'ends with each logger',
  'doors/cli/doctor/target.ts trust': 'one',
  'kernel/session/shown-error.ts last': 'one',
  'features/hooks/webhooks/questions.ts PASSED_ON': 'constant',
  'doors/http/api/api.ts TABLE': 'constant',
  'doors/metrics/page.ts loaded': 'one',
  'kernel/identity/access.ts answerCount': 'one',
  'kernel/identity/access.ts compiledGrants': 'ends with each identity; 256 answers each, 65,536 of all',
  'kernel/identity/token-verifier.ts judge': 'one',
  'doors/in-process/process-draft.ts validKey': 'one',
  'adapters/brokers/remote/pattern-index.ts NO_CHILDREN': 'constant',
  'kernel/ports/attributes.ts TEXT_NAMES': 'constant',
  'kernel/ports/inbound-check.ts validKeys': 'cleared with 8,192',
  'kernel/ports/inbound-check.ts lastValidKey': 'one',
  'kernel/ports/position.ts blockEpoch': 'one',
  'kernel/ports/position.ts blockNumber': 'one',
  'kernel/ports/position.ts blockText': 'one',
  'kernel/session/id.ts usedBytes': 'one',
  'features/streams/writer.ts PASSING': 'constant',
  'adapters/transports/upgrade/rejection.ts OWN_HEADERS': 'constant',
  'adapters/transports/upgrade/take-upgrades.ts wanted': 'ends with each listener',
  'adapters/transports/upgrade/text-request.ts LINE_STARTS': 'constant',
}

const VARIABLE = /^(?:export )?(?:let|var) (\w+)/gm
const CONSTANT =
  /^(?:export )?const (\w+)(?:: ([^=]*?))? =\s+(?:new (?:Map|Set|WeakMap|WeakSet|Array)\b|\[\]|\{\}$|Object\.create\()/gm

const FIELD =
  /^ {2}(?:readonly )?(#?\w+)(?:: [^=\n]+)? =\s+(?:new (?:Map|Set|WeakMap|WeakSet)\b|\[\]$|\{ \w+: new Map|Object\.create\()/gm

function heldOf(text: string): (string | undefined)[] {
  const constants = Array.from(text.matchAll(CONSTANT)).filter(([, , type = '']) => !/^readonly/i.test(type))
  return [...text.matchAll(VARIABLE), ...constants].map(([, name]) => name)
}

function fieldsOf(text: string): (string | undefined)[] {
  return Array.from(text.matchAll(FIELD), ([, name]) => name)
}

it.each([
  ['module', HELD, heldOf],
  ['class', HELD_FIELDS, fieldsOf],
] as const)('has a row for each thing of a %s that may grow', (_, rows, find) => {
  const files = SOURCES.flatMap(([prefix, folder]) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((file) => file.replaceAll('\\', '/'))
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .map((file) => [`${prefix}${file}`, `${folder}/${file}`] as const),
  )
  expect(files.length).toBeGreaterThan(300)
  const found = files.flatMap(([name, file]) => find(readFileSync(file, 'utf8')).map((held) => `${name} ${held}`))
  expect([...new Set(found)].toSorted()).toEqual(Object.keys(rows).toSorted())
})

describe('what a module remembers stays small', () => {
  const fills: Readonly<Record<string, (index: number) => unknown>> = {
    'keys of messages of a broker': (index) => inboundDefect(`key.of.some.length.${index}`, Buffer.alloc(0), 100),
    'nodes of messages of a log': (index) => fingerprintOfSource({ node: `node-${index}`, sequence: 1 }, 1),
    'grants of identities': (index) => {
      const grants = [{ keys: ['chat.#'], allow: ['publish' as const] }]
      return mayPublish(
        { userId: `user-${index}`, grants, claims: undefined, expiresAtMs: undefined } as never,
        'chat.1',
      )
    },
  }

  it.each(Object.entries(fills))('%s', async (_, fill) => {
    expect(await growthOf(fill)).toBeLessThan(MAX_GROWTH_BYTES)
  })
})

describe('what lives as long as its node is bounded, and counted whole:', () => {
  // Symptom: 1,000 users who had published to 256 keys each took 43 MB that nobody counted. Cause: the answers lived as long as their
  // identities, which are remembered by the size of their tokens.
  it('answers about the publishes of identities that stay', () => {
    const grants = [{ keys: ['chat.*'], allow: ['publish' as const] }]
    const identities = Array.from({ length: 1_000 }, (_, index) => ({ userId: `user-${index}`, grants }))
    const before = usedBytes()
    for (const identity of identities)
      for (let index = 0; index < 256; index++)
        mayPublish(identity as never, `chat.${'x'.repeat(100)}${identity.userId}-${index}`)
    expect(usedBytes() - before).toBeLessThan(20 * 1_048_576)
    expect(identities.length).toBe(1_000)
  })

  // Symptom: 64 tokens of strangers stayed in memory. Cause: the header of a token is a part of it, and a part keeps the whole.
  it('headers of tokens, without their tokens', async () => {
    const rules = { clockToleranceS: 0 }
    const tokens = new PlainTokens({ secret: SECRET }, rules)
    const growth = await growthOfFirst(60, (index) => {
      const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: `key-${index}` })).toString('base64url')
      tokens.verify(`${header}.${'a'.repeat(262_144)}.a`, 0)
    })
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES)
    expect(tokens.verify('a.a.a', 0)).toBeUndefined()
  })

  it('tokens that were valid', async () => {
    const verifier = createTokenVerifier({ secret: SECRET })
    let countedBytes = 0
    const growth = await growthOfFirst(10_000, (index) => {
      const token = signed({ sub: `user-${index}`, exp: 9_999_999_999, webmq: { grants: GRANTS } })
      countedBytes += 600 + 4 * token.length
      const identity = verifier.verifyAtOnce?.(token)
      if (identity !== undefined) mayPublish(identity, 'chat.1')
    })
    expect(growth).toBeLessThan(countedBytes)
    expect(verifier.verifyAtOnce?.(signed({ sub: 'ann' }))?.userId).toBe('ann')
  })

  // Symptom: a refusal in the audit log kept the head of its request for as long as its address was counted.
  it('addresses, without the heads of their requests', async () => {
    const proxies = new TrustedProxies(['127.0.0.1'])
    const kept: string[] = []
    const head = 'x'.repeat(8_000)
    const growth = await growthOfFirst(2_000, (index) => {
      const address = `2001:db8:0000:0000:0000:${(index & 0xff_ff).toString(16)}::1`
      kept.push(new TextUpgradeRequest(1 as never, 'websocket', 1, `${address}\n/\n\n${head}\n`).remoteAddress)
      kept.push(proxies.clientAddress('127.0.0.1', () => `${head}, ${address}`))
    })
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES)
    expect(kept.length).toBe(4_000)
  })

  // Symptom: each client that left while its listen waited for the broker took memory for good.
  it('replays of connections that have closed', async () => {
    const transport = { send: () => undefined, notifyDrained: () => undefined }
    const sender = new ReplaySender({ transport, drains: new Drains(transport), maxOutboxBytes: 1_000 })
    const nothing = { messages: [], hasMore: false }
    const growth = await growthOfFirst(20_000, (index) =>
      sender.read(
        { connection: index as never, isClosed: true },
        () => nothing,
        () => undefined,
      ),
    )
    expect(growth).toBeLessThan(1_048_576)
    sender.release(0 as never)
  })

  // Symptom: where one stream was deleted again and again, nothing of the streams after it was forgotten. Cause: it kept its first place
  // in the order, with an offset that the log still held.
  it('streams that ended, as long as the log has them', async () => {
    const streams = new RolledUp()
    const note = (stream: string, offset: number) =>
      streams.note(`a.${'key'.repeat(50)}.${stream}`, NOTHING, { stream: `${stream}:1:delete` }, offset, offset - 100)
    const growth = await growthOfFirst(20_000, (index) => {
      note('first', 2 * index + 1)
      note(`stream-${index}`, 2 * index + 2)
    })
    expect(growth).toBeLessThan(1_048_576)
    expect(streams.endedAt('a')).toBe(0)
  })

  // Symptom: names that nobody had heard of could take a gigabyte, and then no node could send a large message. Cause: nodes were
  // counted, not bytes, and none that had not ended was given up.
  it('messages of other nodes that do not end, which keep none out that does', async () => {
    const read: string[] = []
    const channel = new NodeChannel({
      node: 'own',
      broker: { bind: () => Promise.resolve(), publish: () => ({ isDuplicate: false }) },
      maxPayloadBytes: 1_048_576,
      onMessage: ({ node }) => void read.push(node),
      onEcho: () => undefined,
      onFormat: () => undefined,
      onError: () => undefined,
    })
    const key = '$webmq.node.own'
    const content = Buffer.alloc(131_072)
    const growth = await growthOfFirst(1_200, (index) => {
      channel.receive({ key, payload: encodePart(`forged-${index}`, content, true) })
    })
    expect(growth).toBeLessThan(80 * 1_048_576)
    const whole = encodeContent('topic', 'kind', '{}', Buffer.alloc(1_000))
    channel.receive({ key, payload: encodePart('peer', whole.subarray(0, 500), true) })
    channel.receive({ key, payload: encodePart('peer', whole.subarray(500), false, 1) })
    expect(read).toEqual(['peer'])
  })
})

const NOTHING = new Uint8Array()
const GRANTS = [{ keys: ['chat.*', 'user.#'], allow: ['listen', 'publish'] }]

function signed(claims: object): string {
  const [header, payload] = [{ alg: 'HS256' }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  return `${header}.${payload}.${createHmac('sha256', SECRET).update(`${header}.${payload}`).digest('base64url')}`
}

const PIPELINED = 8
const CREDENTIAL = 'Authorization: Bearer api-key-of-32-bytes-for-the-tests'
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${CREDENTIAL}\r\n\r\n`

// Symptom: each GET of an ended stream took 0.2 MiB for good. Cause: a map of the module had the streams as its keys, and counted
// their encoded texts alone.
describe('20,000 requests leave nothing behind', () => {
  it.each(['/streams/a', '/api/streams?key=a'])('GET %s', async (path) => {
    const api = await ApiServer.start({ history: ['#=1000'] })
    onTestFinished(() => api.server.stop({ drainMs: 0 }))
    const writer = await api.server.stream('a', { meta: 'x'.repeat(10_000) })
    await writer.append('hello')
    await writer.end()
    const ask = await asking(api.port)
    const growth = await growthOfRounds((indexes) => ask(indexes.map(() => get(path))), {
      perRound: PIPELINED,
      warmUpCount: 400,
    })
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES)
  })

  // Symptom: an idle stream took 18 kB, which nobody counted. Cause: what the node called with its messages was made beside the
  // request that began it, and kept it.
  it('but streams, without the requests that began them', async () => {
    const api = await ApiServer.start({ history: ['#=1000'] })
    onTestFinished(() => api.server.stop({ drainMs: 0 }))
    const streamCount = 800
    const filler = 'x'.repeat(7_000)
    const before = usedBytes()
    const headers = { authorization: CREDENTIAL.slice('Authorization: '.length) }
    for (let index = 0; index < streamCount; index++)
      await fetch(`${api.url}/streams/a.key.of.some.length.${index}?${filler}`, { method: 'PUT', headers })
    expect(usedBytes() - before).toBeLessThan(streamCount * 4_096 + MAX_GROWTH_BYTES)
  })
})
