import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { PresenceMember } from 'webmq-client/protocol'
import { itWhere } from 'webmq-conformance'
import { type FaultProxy, freePort, type ServiceKind, sharedService, startFaultProxy } from 'webmq-services'
import { inTurn } from '../../../../test/in-turn.js'
import { createServer } from '../../src/create-server.js'
import type { WebMQServer } from '../../src/doors/in-process/webmq-server.js'
import { type CliProcess, startCli } from '../cli/process.js'
import { ProtocolClient } from '../protocol-client.js'

const KEY = 'room.1'
const TTL_MS = 2_000
/** A client comes back within it, on a busy machine too. */
const LINGER_MS = 4_000
/** What a machine that does other things at the same time may be late by. */
const SLACK_MS = 10_000

const OPTIONS = {
  port: 0,
  logLevel: 'fatal',
  presenceTtlMs: TTL_MS,
  presenceLingerMs: LINGER_MS,
  brokerHeartbeatMs: 300,
} as const

/** Where the nodes of one test meet. */
interface Meeting {
  /** Options of the next node in this process; its link goes by the proxy, where there is one. */
  options(): Promise<{ readonly broker: string; readonly mesh?: { readonly listen: string } }>
  /** Flags of a node in a process of its own. */
  flags(): Promise<readonly string[]>
  readonly proxy: FaultProxy | undefined
}

let namespaceCount = 0

async function meetAtBroker(url: string, proxy: FaultProxy): Promise<Meeting> {
  const brokerNamespace = `presence-${process.pid}-${++namespaceCount}`
  return {
    options: () => Promise.resolve({ broker: proxy.url, brokerNamespace }),
    flags: () => Promise.resolve(['--broker', url, '--broker-namespace', brokerNamespace]),
    proxy,
  }
}

async function meetInMesh(): Promise<Meeting> {
  const places = await Promise.all([0, 1, 2].map(async () => `127.0.0.1:${await freePort()}`))
  const broker = `mesh://${places.join()}`
  const next = () => places.shift() as string
  return {
    options: () => Promise.resolve({ broker, mesh: { listen: next() } }),
    flags: () => Promise.resolve(['--broker', broker, '--mesh-listen', next()]),
    proxy: undefined,
  }
}

const servers: WebMQServer[] = []
const processes: CliProcess[] = []
const clients: ProtocolClient[] = []

async function startNode(meeting: Meeting): Promise<{ readonly server: WebMQServer; readonly url: string }> {
  const server = createServer({ ...OPTIONS, ...(await meeting.options()) })
  servers.push(server)
  const { url } = await server.start()
  return { server, url }
}

async function startProcess(meeting: Meeting): Promise<{ readonly url: string; kill(): Promise<void> }> {
  const port = await freePort()
  const flags = ['--port', String(port), '--presence-ttl', `${TTL_MS}`, '--presence-linger', `${LINGER_MS}`]
  const cli = startCli([...flags, ...(await meeting.flags())])
  processes.push(cli)
  const url = `ws://127.0.0.1:${port}/ws`
  await vi.waitFor(async () => (await ProtocolClient.open(url)).socket.close(), { interval: 100 })
  return {
    url,
    kill: async () => {
      cli.child.kill('SIGKILL')
      await cli.ended
    },
  }
}

/** A client that is connected, and has been answered. */
async function connect(url: string): Promise<ProtocolClient> {
  const client = await ProtocolClient.open(url)
  clients.push(client)
  return client
}

async function enter(client: ProtocolClient, member: string, data: unknown = member): Promise<string> {
  const answer = await client.request((id) => {
    return { verb: 'presence', id, key: KEY, op: 'enter', member, data: JSON.stringify(data) }
  })
  if (answer.verb === 'error') throw new Error(answer.code)
  return (answer.result as { id: string }).id
}

/** What is told to who watches, as what is known by following it. */
async function watch(url: string): Promise<() => unknown[]> {
  const client = await connect(url)
  const answer = await client.request((id) => ({ verb: 'presence', id, key: KEY, op: 'watch' }))
  if (answer.verb === 'error') throw new Error(answer.code)
  const first = (answer.result as { members: PresenceMember[] }).members
  return () => {
    const members = new Map(first.map((member) => [member.id, member]))
    for (const { enter: entered = [], update = [], leave = [] } of client.received('presence')) {
      for (const member of [...entered, ...update]) members.set(member.id, member)
      for (const id of leave) members.delete(id)
    }
    return [...members.values()].map(({ data }) => data).sort()
  }
}

const soon = { timeout: 20_000, interval: 20 }

afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.terminate()
  for (const { child } of processes.splice(0)) child.kill('SIGKILL')
  await Promise.all(servers.splice(0).map((server) => server.stop({ drainMs: 0 })))
})

describe.each<ServiceKind | 'mesh'>(inTurn(['redis', 'nats', 'rabbitmq', 'mesh']))('presence over %s', (kind) => {
  let url = ''
  let proxy: FaultProxy | undefined
  const meet = () => (proxy === undefined ? meetInMesh() : meetAtBroker(url, proxy))

  beforeAll(async () => {
    if (kind === 'mesh') return
    ;({ url } = await sharedService(kind))
    proxy = await startFaultProxy({ url })
  }, 120_000)
  afterAll(async () => {
    await proxy?.stop()
  })

  it('shows on one node who enters, changes and leaves on another', async () => {
    const meeting = await meet()
    const [a, b] = [await startNode(meeting), await startNode(meeting)]
    const ada = await connect(a.url)
    const id = await enter(ada, 'ada')
    const seen = await watch(b.url)
    await vi.waitFor(() => expect(seen()).toEqual(['ada']), soon)
    await enter(ada, 'ada', 'away')
    await vi.waitFor(() => expect(seen()).toEqual(['away']), soon)
    expect(await b.server.presence(KEY)).toEqual([{ id, data: 'away' }])
    await ada.request((id) => ({ verb: 'presence', id, key: KEY, op: 'leave' }))
    await vi.waitFor(() => expect(seen()).toEqual([]), soon)
  })

  it('hides a reconnect to another node', async () => {
    const meeting = await meet()
    const [a, b] = [await startNode(meeting), await startNode(meeting)]
    const bob = await connect(b.url)
    await bob.request((id) => ({ verb: 'presence', id, key: KEY, op: 'watch' }))
    const ada = await connect(a.url)
    await enter(ada, 'ada')
    await vi.waitFor(() => expect(bob.received('presence')).toHaveLength(1), soon)
    ada.socket.terminate()
    await enter(await connect(b.url), 'ada')
    await vi.waitFor(() => expect(a.server.stats().presence.ownMemberCount).toBe(0), soon)
    await vi.waitFor(() => expect(a.server.stats().presence.memberCount).toBe(1), soon)
    expect(bob.received('presence')).toHaveLength(1)
  })

  it('lets the members of a killed process vanish within the time to live', async () => {
    const meeting = await meet()
    const [a, b] = [await startNode(meeting), await startNode(meeting)]
    const doomed = await startProcess(meeting)
    const seen = [await watch(a.url), await watch(b.url)]
    await enter(await connect(doomed.url), 'doomed')
    await enter(await connect(a.url), 'stays')
    for (const members of seen) await vi.waitFor(() => expect(members()).toEqual(['doomed', 'stays']), soon)
    const killedMs = performance.now()
    await doomed.kill()
    for (const members of seen) await vi.waitFor(() => expect(members()).toEqual(['stays']), soon)
    const goneMs = performance.now() - killedMs
    expect(goneMs).toBeLessThan(TTL_MS + SLACK_MS)
    process.stdout.write(`  ${kind}: gone ${Math.round(goneMs)} ms after the kill, time to live ${TTL_MS} ms\n`)
  }, 40_000)

  itWhere(kind !== 'mesh')(
    'agrees again after an outage of the broker, with what happened meanwhile',
    async () => {
      const meeting = await meet()
      const [a, b] = [await startNode(meeting), await startNode(meeting)]
      const seen = [await watch(a.url), await watch(b.url)]
      const [stays, goes] = [await connect(a.url), await connect(a.url)]
      await enter(stays, 'stays')
      await enter(goes, 'goes')
      for (const members of seen) await vi.waitFor(() => expect(members()).toEqual(['goes', 'stays']), soon)
      await meeting.proxy?.cut()
      for (const { server } of [a, b]) await vi.waitFor(() => expect(server.stats().broker.status).toBe('down'), soon)
      await goes.request((id) => ({ verb: 'presence', id, key: KEY, op: 'leave' }))
      await enter(await connect(b.url), 'comes')
      await enter(stays, 'stays', 'stayed')
      await meeting.proxy?.heal()
      for (const members of seen) await vi.waitFor(() => expect(members()).toEqual(['comes', 'stayed']), soon)
    },
    40_000,
  )
})
