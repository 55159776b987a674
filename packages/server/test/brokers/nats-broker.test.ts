import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { connect, type NatsConnection, nkeys } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createNatsBroker } from 'webmq-broker-nats'
import { brokerSuite, historyOf } from 'webmq-conformance'
import type { Service } from 'webmq-services'
import { freePort, startFaultProxy, startNats } from 'webmq-services'
import { hasHistory } from '../../src/adapters/brokers/log/history-log.js'
import { EPHEMERAL_KEY } from '../../src/adapters/brokers/remote/ephemeral.js'
import type { AddressedBrokerOptions } from '../../src/adapters/brokers/remote/options.js'
import type { Broker, BrokerCapabilities, BrokerSink, BrokerStatus } from '../../src/kernel/ports/broker.js'
import type { HistoryOptions } from '../../src/kernel/ports/history-rules.js'

const CAPABILITIES: BrokerCapabilities = {
  history: false,
  retained: false,
  ordered: false,
  sharedLog: false,
  confirms: true,
  queueGroups: true,
  durable: false,
  manyNodes: true,
}
const DEFAULTS: Omit<AddressedBrokerOptions, 'broker'> = {
  brokerNamespace: 'webmq',
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 5_000,
  brokerMaxPendingBytes: 64 * 1024 ** 2,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  ...historyOf(),
  maxPayloadBytes: 262_144,
}

let service: Service
let monitorPort: number

beforeAll(async () => {
  monitorPort = await freePort()
  service = await startNats({ args: ['--http_port', String(monitorPort)], hasJetStream: true })
})

afterAll(() => service.stop())

/** A name that only one test uses. */
function ownNamespace(): string {
  return `test-${randomBytes(6).toString('hex')}`
}

/** For files of one test. */
function ownFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-nats-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

interface ConnectionReport {
  readonly name?: string
  readonly subscriptions_list?: readonly string[]
}

/** Connections of a namespace's nodes and their subscriptions, as the server sees them. */
async function connectionsOf(namespace: string): Promise<readonly ConnectionReport[]> {
  const response = await fetch(`http://127.0.0.1:${monitorPort}/connz?subs=1&limit=1000`)
  const { connections } = (await response.json()) as { connections: readonly ConnectionReport[] }
  return connections.filter(({ name }) => name?.startsWith(`webmq ${namespace} `))
}

/** The end of its subject, behind what NATS cannot have in one. */
const EPHEMERAL = EPHEMERAL_KEY.slice(1)

async function subscriptionsOf(namespace: string): Promise<readonly string[]> {
  const all = (await connectionsOf(namespace)).flatMap(({ subscriptions_list: list = [] }) => list)
  // Every node has one for ephemeral messages.
  return all.filter((subject) => !subject.endsWith(EPHEMERAL)).sort()
}

/** What JetStream answers to a request. */
async function askJetStream(name: string, body: object = {}): Promise<Record<string, unknown>> {
  const client = await connect({ servers: service.url })
  const answer = await client.request(`$JS.API.${name}`, JSON.stringify(body))
  await client.close()
  return answer.json<Record<string, unknown>>()
}

/** Consumers of a namespace's log. */
async function consumersOf(namespace: string): Promise<readonly string[]> {
  const { consumers } = await askJetStream(`CONSUMER.NAMES.${namespace}-log`)
  return Array.isArray(consumers) ? consumers.map(String) : []
}

class Recorder implements BrokerSink {
  readonly received: { readonly key: string; readonly text: string; readonly isBinary: boolean }[] = []
  readonly events: string[] = []
  readonly causes: Error[] = []
  refusedCount = 0

  get texts(): string[] {
    return this.received.map(({ text }) => text)
  }

  deliver({ key, payload, isBinary }: Parameters<BrokerSink['deliver']>[0]): boolean {
    this.received.push({ key, text: Buffer.from(payload).toString(), isBinary })
    return true
  }

  status(status: BrokerStatus, cause?: Error): void {
    this.events.push(status)
    if (cause !== undefined) this.causes.push(cause)
  }

  gap(): void {
    this.events.push('gap')
  }

  refused(): void {
    this.refusedCount++
  }
}

async function startNode(options: Partial<AddressedBrokerOptions> = {}): Promise<{ broker: Broker; sink: Recorder }> {
  const broker = await createNatsBroker({ ...DEFAULTS, broker: service.url, ...options })
  const sink = new Recorder()
  onTestFinished(() => broker.stop())
  await broker.start(sink)
  return { broker, sink }
}

async function plainClient(url = service.url, options: object = {}): Promise<NatsConnection> {
  const client = await connect({ servers: url, ...options })
  onTestFinished(() => client.close())
  return client
}

async function privateNats(config: string): Promise<Service> {
  const server = await startNats({ config })
  onTestFinished(() => server.stop())
  return server
}

type KeyPair = ReturnType<typeof nkeys.createUser>

const NO_LIMITS = { subs: -1, conn: -1, leaf: -1, imports: -1, exports: -1, data: -1, payload: -1, wildcards: true }

/** A JWT of NATS's kind, in which one key speaks of another. */
function tokenOf(issuer: KeyPair, subject: KeyPair, nats: object): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const claims = {
    jti: 'x',
    iat: 1,
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    nats: { version: 2, ...nats },
  }
  const signed = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(claims)}`
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url')}`
}

const message = (key: string, text: string) => ({ key, payload: Buffer.from(text), isBinary: false })

/** Nodes of one namespace; their stream goes with them, which would otherwise stay. */
function system(options: HistoryOptions) {
  return () => {
    const brokerNamespace = ownNamespace()
    return {
      createNode: (history = options) =>
        createNatsBroker({
          ...DEFAULTS,
          ...(hasHistory(options) ? history : options),
          broker: service.url,
          brokerNamespace,
        }),
      residue: async () => [
        ...(await connectionsOf(brokerNamespace)).map(({ name = '' }) => name),
        ...(await subscriptionsOf(brokerNamespace)),
        ...(hasHistory(options) ? await consumersOf(brokerNamespace) : []),
      ],
      end: async () => {
        if (hasHistory(options)) await askJetStream(`STREAM.DELETE.${brokerNamespace}-log`)
      },
    }
  }
}

brokerSuite('nats', system(historyOf()), CAPABILITIES)

brokerSuite('nats, all logged', system(historyOf('#=1000')), {
  ...CAPABILITIES,
  history: true,
  ordered: true,
  sharedLog: true,
  durable: true,
})

describe('broker nats, subscriptions', () => {
  it('subscribes to the narrowest subjects that bring what is listened with, each once', async () => {
    const brokerNamespace = ownNamespace()
    const { broker } = await startNode({ brokerNamespace })
    for (const pattern of ['a', 'a.b', 'a.*', 'a.#.z', 'b.#', 'b.c', '*.c.*', 'x.#.y.z']) await broker.bind(pattern)
    const under = (...keys: string[]) => keys.map((key) => `${brokerNamespace}.${key}`).sort()
    await vi.waitFor(async () =>
      expect(await subscriptionsOf(brokerNamespace)).toEqual(under('a', 'a.>', 'b', 'b.>', '*.c.*', 'x.*.>')),
    )
    await broker.unbind('a.#.z')
    await vi.waitFor(async () =>
      expect(await subscriptionsOf(brokerNamespace)).toEqual(under('a', 'a.*', 'b', 'b.>', '*.c.*', 'x.*.>')),
    )
  })

  it('makes a thousand subscriptions in a few round trips', async () => {
    const brokerNamespace = ownNamespace()
    const { broker } = await startNode({ brokerNamespace })
    const patterns = Array.from({ length: 1_000 }, (_, index) => `key.${index}.*`)
    const startMs = performance.now()
    await Promise.all(patterns.map((pattern) => broker.bind(pattern)))
    // A round trip each, one after the other, would take longer, here and everywhere.
    expect(performance.now() - startMs).toBeLessThan(10_000)
    expect(await subscriptionsOf(brokerNamespace)).toHaveLength(1_000)
    await Promise.all(patterns.map((pattern) => broker.unbind(pattern)))
    await vi.waitFor(async () => expect(await subscriptionsOf(brokerNamespace)).toEqual([]))
  })
})

describe('broker nats, with plain clients', () => {
  it('takes what they publish: JSON as text, anything else as bytes', async () => {
    const brokerNamespace = ownNamespace()
    const { broker, sink } = await startNode({ brokerNamespace })
    await broker.bind('#')
    const client = await plainClient()
    client.publish(`${brokerNamespace}.a.b`, '{"x":1}')
    client.publish(`${brokerNamespace}.größe`, 'no JSON')
    client.publish(`${brokerNamespace}.%.%3E`, '"escaped"')
    await vi.waitFor(() => expect(sink.received).toHaveLength(3))
    expect(sink.received).toEqual([
      { key: 'a.b', text: '{"x":1}', isBinary: false },
      { key: 'größe', text: 'no JSON', isBinary: true },
      { key: '.>', text: '"escaped"', isBinary: false },
    ])
  })

  it('delivers what they publish once, though several subscriptions bring it', async () => {
    const brokerNamespace = ownNamespace()
    const { broker, sink } = await startNode({ brokerNamespace })
    for (const pattern of ['*.b', 'a.*', 'a.b.#', 'end']) await broker.bind(pattern)
    const client = await plainClient()
    for (const text of ['1', '2']) client.publish(`${brokerNamespace}.a.b`, text)
    client.publish(`${brokerNamespace}.end`, '3')
    await vi.waitFor(() => expect(sink.texts).toContain('3'))
    expect(sink.texts).toEqual(['1', '2', '3'])
  })

  it('counts what cannot be a message of its own', async () => {
    const brokerNamespace = ownNamespace()
    const { broker, sink } = await startNode({ brokerNamespace })
    await broker.bind('#')
    const client = await plainClient()
    client.publish(`${brokerNamespace}.%41`, '1')
    client.publish(`${brokerNamespace}.${'x'.repeat(256)}`, '2')
    client.publish(`${brokerNamespace}.a`, Uint8Array.of(0, 0xff))
    client.publish(`${brokerNamespace}.end`, '3')
    await vi.waitFor(() => expect(sink.texts).toEqual(['3']))
    expect(broker.stats().malformedCount).toBe(3)
  })

  it('sends them an envelope of 16 to 20 bytes and the payload as it is', async () => {
    const brokerNamespace = ownNamespace()
    const { broker } = await startNode({ brokerNamespace })
    const client = await plainClient()
    const received: string[] = []
    client.subscribe(`${brokerNamespace}.a`, {
      callback: (_error, { data }) => {
        received.push(Buffer.from(data).toString('latin1'))
      },
    })
    await client.flush()
    await broker.publish(message('a', '{"x": 1}'))
    await vi.waitFor(() => expect(received).toHaveLength(1))
    expect(received[0]?.startsWith('\0')).toBe(true)
    expect(received[0]?.slice(16)).toBe('{"x": 1}')
  })
})

describe('broker nats, who may do what', () => {
  const reject = async (
    broker: string,
    options: Partial<AddressedBrokerOptions> = {},
  ): Promise<Error & { code?: string }> => {
    const started = startNode({ broker, ...options })
    return await started.then(
      () => expect.fail('it has started'),
      (error: unknown) => error as Error,
    )
  }

  const withUser = (server: Service, userInfo: string) => server.url.replace('//', `//${userInfo}@`)

  it('logs in with a password, and ends the start at once when it is wrong, showing neither', async () => {
    const server = await privateNats('authorization { user: joe, password: "s3cr3t:@" }')
    await startNode({ broker: withUser(server, 'joe:s3cr3t%3A%40') })
    const error = await reject(withUser(server, 'joe:wr0ng'))
    expect(error).toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining('Authorization Violation'),
    })
    expect(`${error.message} ${error.stack}`).not.toContain('wr0ng')
    expect(await reject(server.url)).toMatchObject({ code: 'E_BROKER_REFUSED' })
  })

  it('logs in with a token', async () => {
    const server = await privateNats('authorization { token: "t0ken" }')
    await startNode({ broker: withUser(server, 't0ken') })
    expect(await reject(withUser(server, 'other'))).toMatchObject({ code: 'E_BROKER_REFUSED' })
  })

  it('logs in with an nkey, whose file is read at every connect', async () => {
    const pair = nkeys.createUser()
    const server = await privateNats(`authorization { users: [ { nkey: ${pair.getPublicKey()} } ] }`)
    const file = path.join(ownFolder(), 'seed.nk')
    writeFileSync(file, `${Buffer.from(nkeys.createUser().getSeed()).toString()}\n`)
    expect(await reject(`${server.url}?nkey=${file}`)).toMatchObject({ code: 'E_BROKER_REFUSED' })
    writeFileSync(file, `${Buffer.from(pair.getSeed()).toString()}\n`)
    await startNode({ broker: `${server.url}?nkey=${file}` })
    writeFileSync(file, 'no seed')
    expect(await reject(`${server.url}?nkey=${file}`)).toMatchObject({ code: 'E_BROKER_REFUSED' })
    expect(await reject(`${server.url}?creds=${file}-not-there`)).toMatchObject({ code: 'E_BROKER_REFUSED' })
  })

  it('logs in with a credentials file', async () => {
    const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()]
    const accountToken = tokenOf(operator, account, { type: 'account', limits: NO_LIMITS })
    const server = await privateNats(
      `operator: ${tokenOf(operator, operator, { type: 'operator' })}\nresolver: MEMORY\n` +
        `resolver_preload: { ${account.getPublicKey()}: ${accountToken} }`,
    )
    const file = path.join(ownFolder(), 'user.creds')
    const seed = Buffer.from(user.getSeed()).toString()
    writeFileSync(
      file,
      `-----BEGIN NATS USER JWT-----\n${tokenOf(account, user, { type: 'user', ...NO_LIMITS })}\n------END NATS USER JWT------\n\n` +
        `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
    )
    const { broker } = await startNode({ broker: `${server.url}?creds=${file}` })
    await broker.publish(message('a', 'one'))
    expect(await reject(server.url)).toMatchObject({ code: 'E_BROKER_REFUSED' })
  })

  it('encrypts, and trusts only whom it should', async () => {
    const folder = ownFolder()
    const [key, cert] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')]
    const names = ['-subj', '/CN=nats', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, ...names], {
      stdio: 'ignore',
    })
    const server = await privateNats(`tls { cert_file: "${cert}", key_file: "${key}" }`)
    const tlsUrl = server.url.replace('nats:', 'tls:')
    // The server wants it, whatever the address says.
    for (const url of [tlsUrl, server.url, tlsUrl.replace('127.0.0.1', 'localhost')]) {
      const { broker, sink } = await startNode({ broker: `${url}?ca=${cert}` })
      await broker.bind('a')
      await broker.publish(message('a', 'x'.repeat(100_000)))
      await vi.waitFor(() => expect(sink.received).toHaveLength(1))
    }
    expect(await reject(tlsUrl)).toMatchObject({ code: 'E_BROKER_REFUSED', message: expect.stringContaining('self') })
    expect(await reject(service.url.replace('nats:', 'tls:'))).toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining('no TLS'),
    })
  })

  it('refuses to start when its user may not use the namespace', async () => {
    const permissions = 'permissions { publish: "other.>", subscribe: ["other.>"] }'
    const server = await privateNats(`authorization { users: [ { user: joe, password: x, ${permissions} } ] }`)
    const error = await reject(withUser(server, 'joe:x'))
    expect(error).toMatchObject({ code: 'E_BROKER_REFUSED', message: expect.stringContaining('webmq.>') })
    await startNode({ broker: withUser(server, 'joe:x'), brokerNamespace: 'other' })
  })

  it('passes on which publish and which bind the server has refused', async () => {
    const secret = ['webmq.secret.>', 'webmq.sécr>t%22\u{301}\u{ad}x']
    const denied = `{ deny: ${JSON.stringify(secret)} }`
    const server = await privateNats(
      `authorization { users: [ { user: joe, password: x, permissions { publish: ${denied}, subscribe: ${denied} } } ] }`,
    )
    const { broker, sink } = await startNode({ broker: withUser(server, 'joe:x') })
    const keys = ['a', 'secret.a', 'b', 'sécr>t"\u{301}\u{ad}x', 'c']
    const outcomes = await Promise.allSettled(keys.map((key) => broker.publish(message(key, key))))
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
    expect(outcomes[1]).toMatchObject({ reason: { message: expect.stringContaining('webmq.secret.a') } })
    await expect(broker.bind('secret.*')).rejects.toMatchObject({ code: 'E_BROKER_REFUSED' })
    await broker.bind('a')
    await broker.publish(message('a', 'still there'))
    await vi.waitFor(() => expect(sink.texts).toEqual(['still there']))
    expect(sink.events).toEqual(['up'])
  })

  it('refuses to start when the server takes smaller messages than clients may send', async () => {
    const server = await privateNats('max_payload: 100000')
    const error = await reject(server.url)
    expect(error).toMatchObject({ code: 'E_BROKER_REFUSED', message: expect.stringMatching(/100000.*262144.*262164/) })
    const { broker, sink } = await startNode({ broker: server.url, maxPayloadBytes: 100_000 - 20 })
    await broker.bind('a')
    await broker.publish({ ...message('a', 'x'.repeat(100_000 - 20)), publisher: 1 })
    await expect(broker.publish(message('a', 'x'.repeat(100_000 - 19)))).rejects.toMatchObject({
      code: 'E_PAYLOAD_TOO_LARGE',
    })
    await vi.waitFor(() => expect(sink.received).toHaveLength(1))
  })

  it('passes on that the server takes no more subscriptions', async () => {
    const server = await privateNats('max_subscriptions: 10')
    const { broker, sink } = await startNode({ broker: server.url })
    // One is for ephemeral messages.
    for (let index = 0; index < 9; index++) await broker.bind(`key.${index}`)
    await expect(broker.bind('key.10')).rejects.toMatchObject({ code: 'E_BROKER_REFUSED' })
    await broker.publish(message('key.8', 'still there'))
    await vi.waitFor(() => expect(sink.texts).toEqual(['still there']))
    expect(sink.events).toEqual(['up'])
  })
})

describe('broker nats, several servers', () => {
  it('takes another host when one does not answer, and says of each why', async () => {
    const dead = `127.0.0.1:${await freePort()}`
    const alive = new URL(service.url).host
    for (let round = 0; round < 4; round++) await startNode({ broker: `nats://${dead},${alive}` })
    const started = startNode({ broker: `nats://${dead},${dead}`, brokerStartTimeoutMs: 2_000 })
    await expect(started).rejects.toMatchObject({
      code: 'E_BROKER_UNAVAILABLE',
      message: expect.stringMatching(/ECONNREFUSED.*ECONNREFUSED/),
    })
  })

  it('leaves a server that is about to stop, and tells of the gap once it is back', async () => {
    const pidFile = path.join(ownFolder(), 'pid')
    const leaving = await privateNats(
      `pid_file: "${pidFile}"\nlame_duck_duration: "60s"\nlame_duck_grace_period: "30s"`,
    )
    const { sink } = await startNode({ broker: leaving.url })
    process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGUSR2')
    await vi.waitFor(() => expect(sink.events.slice(0, 2)).toEqual(['up', 'down']))
    expect(sink.causes[0]?.message).toContain('lame duck')
    await leaving.restart()
    await vi.waitFor(() => expect(sink.events.slice(-2)).toEqual(['gap', 'up']))
  })
})

describe('broker nats, a connection that is not what it was', () => {
  it('gives up a server that never says anything, and leaves no socket open', async () => {
    const sockets = new Set<Socket>()
    const mute = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    })
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void mute.close())
    const { port } = mute.address() as AddressInfo
    const started = startNode({ broker: `nats://127.0.0.1:${port}`, brokerStartTimeoutMs: 500 })
    await expect(started).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    await vi.waitFor(() => expect(sockets.size).toBe(0))
    // Another host gets its chance.
    await startNode({ broker: `nats://127.0.0.1:${port},${new URL(service.url).host}` })
    await vi.waitFor(() => expect(sockets.size).toBe(0))
  })

  it('does not take another protocol for NATS', async () => {
    const other = createServer((socket) => void socket.on('error', () => undefined).write('SSH-2.0-OpenSSH_9.2\r\n'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void other.close())
    const { port } = other.address() as AddressInfo
    const started = startNode({ broker: `nats://127.0.0.1:${port}`, brokerStartTimeoutMs: 300 })
    await expect(started).rejects.toMatchObject({ message: expect.stringContaining('unexpected response') })
  })

  it('finds a half-open connection within two heartbeats, though nobody publishes', async () => {
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const { sink } = await startNode({ broker: proxy.url, brokerNamespace: ownNamespace(), brokerHeartbeatMs: 400 })
    await proxy.swallow()
    const sinceMs = performance.now()
    await vi.waitFor(() => expect(sink.events[1]).toBe('down'), { interval: 10 })
    expect(performance.now() - sinceMs).toBeLessThan(5_000)
    await proxy.heal()
    await vi.waitFor(() => expect(sink.events.slice(-2)).toEqual(['gap', 'up']))
  })

  it('waits for no answer before it sends more', async () => {
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const { broker, sink } = await startNode({ broker: proxy.url, brokerNamespace: ownNamespace() })
    await broker.bind('#')
    await proxy.latency(50)
    const sinceMs = performance.now()
    const publishes: unknown[] = []
    for (let index = 0; index < 500; index++) {
      publishes.push(broker.publish(message('a', `${index}`)))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(publishes)
    // A round trip of 100 ms for each turn would take 50 s.
    expect(performance.now() - sinceMs).toBeLessThan(25_000)
    await vi.waitFor(() => expect(sink.texts).toEqual(publishes.map((_, index) => `${index}`)))
  })

  it('is cut off by the server when it does not read, and tells of the gap', async () => {
    const server = await privateNats('max_pending: 2000000\nwrite_deadline: "500ms"')
    const { broker, sink } = await startNode({ broker: server.url, brokerHeartbeatMs: 60_000 })
    await broker.bind('#')
    const isDone = new Int32Array(new SharedArrayBuffer(4))
    const flood = new Worker(FLOOD, { eval: true, workerData: { port: Number(new URL(server.url).port), isDone } })
    onTestFinished(async () => void (await flood.terminate()))
    // This thread, and with it the node, does nothing meanwhile.
    Atomics.wait(isDone, 0, 0, 15_000)
    await vi.waitFor(() => expect(sink.events).toEqual(['up', 'down', 'gap', 'up']))
    await broker.publish(message('end', 'end'))
    await vi.waitFor(() => expect(sink.texts.at(-1)).toBe('end'))
  })
})

/** Publishes 64 MB, waits for the server to have read that, and a little longer for it to lose its patience. */
const FLOOD = `
  const { connect } = require('node:net')
  const { workerData: { port, isDone } } = require('node:worker_threads')
  const message = 'PUB webmq.flood 64000\\r\\n' + 'x'.repeat(64000) + '\\r\\n'
  const socket = connect(port, '127.0.0.1', () => {
    socket.write('CONNECT {"verbose":false}\\r\\n')
    for (let index = 0; index < 1000; index++) socket.write(message)
    socket.write('PING\\r\\n')
  })
  socket.on('data', (bytes) => {
    if (bytes.includes('PONG')) setTimeout(() => { Atomics.store(isDone, 0, 1); Atomics.notify(isDone, 0) }, 1500)
  })
`
