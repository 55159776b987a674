import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import type { GapReason } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { MemoryBroker } from '../src/adapters/brokers/memory/broker.js'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { createTokenVerifier } from '../src/kernel/identity/index.js'
import type { BrokerSink } from '../src/kernel/ports/broker.js'
import { FakeServer } from './fake-server.js'
import { memoryOptions } from './memory-options.js'

/** A memory broker into which the test puts what a hostile or broken broker would deliver. */
class HostileBroker extends MemoryBroker {
  sink: BrokerSink | undefined

  override async start(sink: BrokerSink): Promise<void> {
    this.sink = sink
    await super.start(sink)
  }
}

const SECRET = 'a secret that is long enough for HS256'
const MAX_PAYLOAD_BYTES = 4096
const OPTIONS = {
  maxPayloadBytes: MAX_PAYLOAD_BYTES,
  maxOutboxBytes: 16_384,
  maxListensPerConnection: 16,
  presenceMaxKeysPerConnection: 16,
  presenceMaxDataBytes: 1024,
  historyMaxMessages: 200,
  historyMaxBytes: 262_144,
  dedupeMaxIds: 200,
  history: ['log.#=100'],
} as const satisfies ServerOptions

async function startHostile(options: ServerOptions = {}, hasTokens = false) {
  const broker = new HostileBroker(memoryOptions({ ...OPTIONS, ...options }))
  const verifier = hasTokens ? createTokenVerifier({ secret: SECRET }) : undefined
  const fake = await FakeServer.start({ ...OPTIONS, ...options }, { broker, ...(verifier && { verifier }) })
  return { fake, broker }
}

const sign = (claims: object) =>
  new SignJWT(claims as Record<string, unknown>).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(SECRET))

const oneOf = <T>(...values: readonly T[]) => fc.constantFrom(...values)
const words = oneOf('a', 'b', 'log', 'x', '*', '#', '', '$webmq', 'ü', '\u0000', 'w'.repeat(120))
const keys = fc.oneof(
  { arbitrary: fc.array(words, { minLength: 1, maxLength: 12 }).map((parts) => parts.join('.')), weight: 4 },
  { arbitrary: fc.nat(200).map((count) => `${'a.'.repeat(count)}b`), weight: 1 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 40 }), weight: 1 },
)
const ids = fc.oneof(oneOf('1', '2', '-', 'tick-4711', ''), fc.string({ maxLength: 70 }))
const positions = oneOf('-', 'a:0', 'aaaaaaaa:zz', ':', '', `${'e'.repeat(52)}:${'z'.repeat(11)}`)
const counts = oneOf('0', '1', '5', '1000', '999999999999999', '-1', '1.5', 'NaN')
const options = fc
  .array(
    fc.oneof(
      positions.map((position) => `since=${position}`),
      counts.map((count) => `last=${count}`),
      counts.map((count) => `rewind=${count}`),
      counts.map((count) => `limit=${count}`),
      ids.map((id) => `id=${id}`),
      ids.map((name) => `member=${name}`),
      oneOf('reverse', 'noecho', 'group=g', 'op=enter', 'op=leave', 'op=get', 'op=watch', 'op=unwatch', 'op=x'),
    ),
    { maxLength: 4 },
  )
  .map((parts) => parts.map((part) => ` ${part}`).join(''))
const bodies = fc.oneof(
  oneOf('', '{}', '1', '{"a":', '\ud800', '[[[[[[', 'x'.repeat(MAX_PAYLOAD_BYTES), 'x'.repeat(MAX_PAYLOAD_BYTES + 1)),
  fc.json({ maxDepth: 3 }),
)
const lines = fc
  .tuple(
    oneOf('publish', 'listen', 'unlisten', 'history', 'presence', 'auth', 'ping', 'PUBLISH', 'welcome', ''),
    ids,
    keys,
    options,
    fc.option(bodies),
  )
  .map(([verb, id, key, more, body]) => `${verb} ${id} ${key}${more}${body === null ? '' : `\n${body}`}`)

const claims = fc.record(
  {
    sub: fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      oneOf<unknown>('界'.repeat(40), 'josé', 'a\r\nb: c', 'x'.repeat(256), '', 1, null, {}, []),
    ),
    exp: oneOf<unknown>(1, 4_000_000_000, 1e300, -1, 'soon', null),
    webmq: oneOf<unknown>(
      { grants: [{ keys: ['#'], allow: ['listen', 'publish', 'presence'] }] },
      { grants: [{ keys: ['log.*'], allow: ['listen'] }] },
      { grants: 'all' },
      1,
    ),
  },
  { requiredKeys: [] },
)

/** The server under attack. */
interface Stage {
  readonly fake: FakeServer
  readonly broker: HostileBroker
  readonly hostile: FakeClient[]
}

const MAX_HOSTILE_CLIENTS = 8
const PLAY_MS = 5_000

function clientAt({ hostile }: Stage, index: number): FakeClient | undefined {
  return hostile[index % Math.max(1, hostile.length)]
}

function send(stage: Stage, from: number, data: string | Uint8Array): void {
  const client = clientAt(stage, from)
  if (client?.isOpen === true && client.closure === undefined) client.sendRaw(data)
}

async function connect(stage: Stage, subprotocols: readonly string[] = ['webmq.v1']): Promise<void> {
  if (stage.hostile.length >= MAX_HOSTILE_CLIENTS) stage.hostile.shift()?.drop()
  const client = await stage.fake.connect({ subprotocols })
  stage.hostile.push(client)
  // Tokens are verified by other threads.
  for (let turn = 0; turn < 1_000 && !client.isOpen; turn++) await stage.fake.settled()
}

/** Steps are data, so that a counterexample can be read. */
const steps = fc.oneof(
  { weight: 10, arbitrary: fc.record({ step: fc.constant('text' as const), from: fc.nat(7), line: lines }) },
  { weight: 2, arbitrary: fc.record({ step: fc.constant('binary' as const), from: fc.nat(7), line: lines }) },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('bytes' as const),
      from: fc.nat(7),
      bytes: fc.uint8Array({ maxLength: 200 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ step: fc.constant('connect' as const), claims: fc.option(claims) }) },
  { weight: 2, arbitrary: fc.record({ step: fc.constant('token' as const), from: fc.nat(7), claims }) },
  {
    weight: 1,
    arbitrary: fc.record({ step: fc.constant('drop' as const), from: fc.nat(7), code: oneOf(1000, 1001, 1006) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      step: fc.constant('delivered' as const),
      key: keys,
      payload: fc.oneof(fc.uint8Array({ maxLength: 100 }), fc.constant(new Uint8Array(20_000))),
      isBinary: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      step: fc.constant('gap' as const),
      reason: oneOf<GapReason>('broker-lost', 'epoch-changed', 'history-expired'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ step: fc.constant('turn' as const) }) },
)

type Step = typeof steps extends fc.Arbitrary<infer S> ? S : never

async function play(stage: Stage, step: Step): Promise<void> {
  switch (step.step) {
    case 'text':
      return send(stage, step.from, step.line)
    case 'binary':
      return send(stage, step.from, Buffer.from(step.line))
    case 'bytes':
      return send(stage, step.from, step.bytes)
    case 'connect':
      if (step.claims === null) return await connect(stage)
      return await connect(stage, ['webmq.v1', `webmq.bearer.${await sign(step.claims)}`])
    case 'token':
      return send(stage, step.from, `auth t\n${await sign(step.claims)}`)
    case 'drop':
      return clientAt(stage, step.from)?.drop(step.code)
    case 'delivered': {
      const { key, payload, isBinary } = step
      stage.broker.sink?.deliver({ key, payload, isBinary })
      return
    }
    case 'gap':
      return stage.broker.sink?.gap(step.reason)
    case 'turn':
      return await stage.fake.settled()
  }
}

/** The server still serves somebody else: their ping is answered, and their messages arrive. */
async function expectToServe(fake: FakeServer, witness: FakeClient, round: number): Promise<void> {
  witness.clear()
  witness.send({ verb: 'ping' })
  const payload = `${round}`
  witness.send({ verb: 'publish', id: 'w', key: 'witness.1', echo: true, payload })
  for (let turn = 0; turn < 50 && witness.messages.length < 3; turn++) await fake.settled()
  expect(witness.messages.map(({ verb }) => verb).sort()).toEqual(['message', 'ok', 'pong'])
}

describe('whatever clients, tokens and the broker send', () => {
  it.each([
    ['without tokens', false],
    ['with tokens', true],
  ])('a server %s lives, reports no bug, and serves the others', async (_name, hasTokens) => {
    const { fake, broker } = await startHostile({}, hasTokens)
    const token = await sign({ sub: 'witness', webmq: { grants: [{ keys: ['#'], allow: ['listen', 'publish'] }] } })
    const witness = await fake.connect({ subprotocols: ['webmq.v1', `webmq.bearer.${token}`] })
    for (let turn = 0; turn < 1_000 && witness.received('welcome').length === 0; turn++) await fake.settled()
    witness.send({ verb: 'listen', id: 'l', pattern: 'witness.*' })
    await fake.settled()
    let round = 0
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 40 }), async (script) => {
        const stage: Stage = { fake, broker, hostile: [] }
        await connect(stage)
        for (const step of script) await play(stage, step)
        await expectToServe(fake, witness, ++round)
        for (const client of stage.hostile) client.drop()
        await fake.settled()
        expect(fake.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
        expect(fake.server.stats().connectionCount, 'only the witness is left').toBe(1)
      }),
      // A slow machine plays fewer.
      { numRuns: 500, interruptAfterTimeLimit: PLAY_MS, markInterruptAsFailure: false },
    )
    await fake.server.stop()
  })

  it('memory that connections retain stays below what their limits add up to', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const { fake, broker } = await startHostile()
    const stage: Stage = { fake, broker, hostile: [] }
    for (let count = 0; count < MAX_HOSTILE_CLIENTS; count++) await connect(stage)
    const heapBytes = async () => {
      await fake.settled()
      for (const client of stage.hostile) client.clear()
      collect()
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    const attack = async (seed: number) => {
      const sent = fc.sample(fc.tuple(fc.nat(), lines), { numRuns: 5000, seed })
      for (const [from, line] of sent) {
        const at = from % MAX_HOSTILE_CLIENTS
        if (stage.hostile[at]?.closure !== undefined) stage.hostile[at] = await fake.connect()
        send(stage, from, line)
        if (from % 64 === 0) await fake.settled()
        if (from % 256 === 0) for (const client of stage.hostile) client.clear()
      }
    }
    // Code, caches and tables that are filled once are no growth.
    await attack(1)
    const before = await heapBytes()
    await attack(2)
    await attack(3)
    const grown = (await heapBytes()) - before
    // The log and the ids are shared; all else is per connection.
    const perConnection =
      OPTIONS.maxListensPerConnection * 8192 +
      OPTIONS.presenceMaxKeysPerConnection * (OPTIONS.presenceMaxDataBytes + 4096) * 2 +
      1_048_576
    const shared = OPTIONS.historyMaxBytes * 2 + OPTIONS.dedupeMaxIds * 1024
    expect(grown).toBeLessThan(shared + MAX_HOSTILE_CLIENTS * perConnection)
    await fake.server.stop()
  })
})
