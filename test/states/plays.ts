import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { type Certificate, freePort, makeCertificate, type Service, startRabbitmq, startRedis } from 'webmq-services'
import { ProtocolClient } from '../../packages/server/test/protocol-client.js'
import { KEY, type Stage, StageNode, startStageProcess, wordsOver } from './stage.js'
import type { StateName } from './table.js'

/** How a real node comes into each state. */
export const PLAYS: Readonly<Record<StateName, () => Promise<Stage>>> = {
  'starting, and the broker does not answer': async () => {
    const node = new StageNode({ broker: `redis://127.0.0.1:${await freePort()}`, brokerStartTimeoutMs: 600_000 })
    node.url = `ws://127.0.0.1:${await freePort()}/ws`
    const started = node.server.start()
    // The end of the test stops it.
    started.catch(() => undefined)
    await vi.waitFor(() => {
      if (node.server.adminAddress === undefined) throw new Error('the admin port is not open')
    })
    return node
  },
  draining: async () => {
    const node = await startStageProcess(['--drain-delay', '10m'])
    void node.kill('SIGTERM')
    return node
  },
  gone: async () => {
    const node = await startStageProcess([])
    await node.kill('SIGKILL')
    return { ...node, lines: () => [] }
  },
  'the broker is down': async () => {
    const redis = await privateRedis()
    const node = await StageNode.start({ broker: redis.url })
    await redis.kill()
    return node
  },
  'the broker is full: Redis without memory': async () => {
    const redis = await privateRedis()
    const node = await StageNode.start({ broker: redis.url, history: ['t.#=100'] })
    await tell(redis, 'CONFIG SET maxmemory-policy noeviction')
    await tell(redis, 'CONFIG SET maxmemory 1')
    return node
  },
  'the broker is blocked: memory alarm of RabbitMQ': async () => {
    const rabbitmq = await startRabbitmq({ isPrivate: true })
    onTestFinished(() => rabbitmq.stop())
    const node = await StageNode.start({ broker: rabbitmq.url })
    await rabbitmq.ctl('set_vm_memory_high_watermark', '0.000001')
    return node
  },
  'pacing: the broker is too slow': async () => {
    const redis = await privateRedis()
    const node = await StageNode.start({ broker: redis.url, brokerTimeoutMs: 5_000, brokerHeartbeatMs: 60_000 })
    const publishers = await Promise.all(Array.from({ length: 3 }, () => ProtocolClient.open(node.url)))
    // A publish that has waited for a second is refused. Redis takes messages for half of a second in three: so few that
    // those which it had when it stopped, and answers late, are more than one of a hundred.
    const pause = () => void tell(redis, 'CLIENT PAUSE 2500 WRITE')
    pause()
    const pauses = setInterval(pause, 3_000)
    let id = 0
    const publishes = setInterval(() => {
      for (const publisher of publishers)
        publisher.send({ verb: 'publish', id: `p${id++}`, key: KEY, echo: false, payload: '1' })
    }, 40)
    onTestFinished(() => {
      clearInterval(pauses)
      clearInterval(publishes)
    })
    const refused = () => publishers.flatMap((publisher) => publisher.received('error'))
    return {
      admin: node.admin,
      url: node.url,
      before: node.before,
      lines: node.lines,
      words: async () => {
        const found = await vi.waitFor(() => {
          const [first] = refused()
          if (first === undefined) throw new Error('none was refused')
          return first
        })
        return [`${found.code}: ${found.message}`]
      },
    }
  },
  'full of connections': async () => {
    const node = await StageNode.start({ maxConnections: 16 })
    await Promise.all(Array.from({ length: 16 }, () => ProtocolClient.open(node.url)))
    // Requests have places of their own.
    node.words = async () => (await wordsOver(node.url)).slice(0, 1)
    return node
  },
  'the database outbox is down': async () =>
    await StageNode.start({ outbox: { url: `postgres://nobody@127.0.0.1:${await freePort()}/nothing` } }),
  'a new certificate is refused': async () => {
    const [old, other] = await Promise.all([certificate(90), certificate(90)])
    const { node, files } = await startWithTls(old)
    writeFileSync(files.keyFile[0], other.key)
    return node
  },
  'a certificate has expired': async () => (await startWithTls(await certificate(-3))).node,
  "its clock is apart from another node's": async () => {
    const redis = await privateRedis()
    const node = await StageNode.start({ broker: redis.url, presenceTtlMs: 500 })
    const clock = new URL('../shifted-clock.mjs', import.meta.url)
    const env = { NODE_OPTIONS: `--import=${clock}`, TEST_CLOCK_AHEAD_S: '300', TEST_CLOCK_STEP_S: '0' }
    await startStageProcess(['--broker', redis.url, '--presence-ttl', '500ms'], env)
    return node
  },
  'another node logs other keys': () => besideOther({ history: ['t.#=100'] }, { history: ['t.#=100', 'u.#=100'] }),
  'another node has other options': () => besideOther({}, { meta: ['t.#'] }),
  'the log is smaller than its rule': async () => {
    const node = await StageNode.start({ history: ['t.#=20000,10m'], historyMaxMessages: 100 })
    for (let number = 0; number < 200; number++) await node.server.publish(KEY, number)
    return node
  },
  'the audit log cannot be written': async () =>
    await StageNode.start({ auditLog: '/dev/full', auditLevel: 'listens' }),
  'the webhook fails': async () => {
    const webhook = { url: `http://127.0.0.1:${await freePort()}/`, events: ['publish'] }
    const node = await StageNode.start({ webhook })
    // A holder of the key is not asked about.
    node.words = async () => (await wordsOver(node.url)).slice(0, 1)
    for (let number = 0; number < 5; number++) await node.words()
    return node
  },
}

async function privateRedis(): Promise<Service> {
  const redis = await startRedis({ isPrivate: true })
  onTestFinished(() => redis.stop())
  return redis
}

/** Gives Redis a command, as a line. */
async function tell({ url }: Service, command: string): Promise<void> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
  socket.end(`${command}\r\n`)
  const [answer] = await once(socket, 'data')
  if (String(answer) !== '+OK\r\n') throw new Error(`${command}: ${String(answer)}`)
}

type Options = Parameters<typeof StageNode.start>[0]

async function besideOther(own: Options, other: Options): Promise<Stage> {
  const { url: broker } = await privateRedis()
  const node = await StageNode.start({ broker, ...own })
  await StageNode.start({ broker, ...other })
  return node
}

function certificate(days: number): Promise<Certificate> {
  return makeCertificate({ names: ['127.0.0.1', 'localhost'], days })
}

async function startWithTls({ cert, key }: Certificate) {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-states-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const files = { certFile: [join(folder, 'cert.pem')], keyFile: [join(folder, 'key.pem')] } as const
  writeFileSync(files.certFile[0], cert)
  writeFileSync(files.keyFile[0], key)
  const caFile = join(folder, 'ca.pem')
  writeFileSync(caFile, cert)
  const started = await StageNode.start({ tls: files })
  const words = () => wordsOver(started.url, cert)
  const { admin, url, before, lines } = started
  return { node: { admin, url, before, lines, words, caFile }, files }
}
