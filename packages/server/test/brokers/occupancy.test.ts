import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort, type ServiceKind, sharedService } from 'webmq-services'
import { inTurn } from '../../../../test/in-turn.js'
import { type CliProcess, startCli } from '../cli/process.js'
import { Backend } from '../hooks/backend.js'
import { ProtocolClient } from '../protocol-client.js'

const TTL_MS = 2_000
const GRACE_MS = 2_000
const soon = { timeout: 20_000, interval: 50 }

let namespaceCount = 0
const processes: CliProcess[] = []
const clients: ProtocolClient[] = []

interface ChildNode {
  readonly url: string
  kill(): Promise<void>
}

/** Flags of the next node of a fleet. */
type Flags = () => Promise<readonly string[]>

async function inMesh(): Promise<Flags> {
  const places = await Promise.all([0, 1, 2].map(async () => `127.0.0.1:${await freePort()}`))
  const broker = `mesh://${places.join()}`
  return () => Promise.resolve(['--broker', broker, '--mesh-listen', places.shift() as string])
}

async function atBroker(kind: ServiceKind): Promise<Flags> {
  const { url } = await sharedService(kind)
  const flags = ['--broker', url, '--broker-namespace', `occupancy-${process.pid}-${++namespaceCount}`]
  return () => Promise.resolve(flags)
}

async function startNode(backend: Backend, flags: Flags): Promise<ChildNode> {
  const port = await freePort()
  const webhook = ['--webhook', backend.url, '--webhook-events', 'occupancy', '--occupancy', 'chat.*']
  const times = ['--presence-ttl', `${TTL_MS}`, '--occupancy-grace', `${GRACE_MS}`]
  const cli = startCli(['--port', `${port}`, ...webhook, ...times, ...(await flags())])
  processes.push(cli)
  const url = `ws://127.0.0.1:${port}/ws`
  await vi.waitFor(async () => (await ProtocolClient.open(url)).socket.close(), soon)
  const kill = async () => {
    cli.child.kill('SIGKILL')
    await cli.ended
  }
  return { url, kill }
}

async function listen({ url }: ChildNode, pattern: string): Promise<ProtocolClient> {
  const client = await ProtocolClient.open(url)
  clients.push(client)
  const answer = await client.request((id) => ({ verb: 'listen', id, pattern }))
  if (answer.verb === 'error') throw new Error(answer.code)
  return client
}

/** What a backend takes that drops what is not newer. */
function takenBy({ notices }: Backend): string[] {
  const newest = new Map<unknown, number>()
  const isNew = ({ pattern, generation }: Record<string, unknown>) => {
    const before = newest.get(pattern) ?? 0
    newest.set(pattern, Math.max(before, generation as number))
    return (generation as number) > before
  }
  return notices.filter(isNew).map(({ event, pattern }) => [event, pattern].join(' ').trim())
}

afterEach(() => {
  for (const client of clients.splice(0)) client.socket.terminate()
  for (const { child } of processes.splice(0)) child.kill('SIGKILL')
})

describe.each<ServiceKind | 'mesh'>(inTurn(['redis', 'nats', 'rabbitmq', 'mesh']))('occupancy over %s', (kind) => {
  let backend: Backend

  beforeAll(async () => {
    backend = await Backend.start()
  })
  afterAll(async () => {
    await backend[Symbol.asyncDispose]()
  })

  it('tells of the first listener and the last one, also when nodes are killed', async () => {
    const flags = kind === 'mesh' ? await inMesh() : await atBroker(kind)
    const nodes = [await startNode(backend, flags), await startNode(backend, flags), await startNode(backend, flags)]
    const [a, b, c] = nodes as [ChildNode, ChildNode, ChildNode]
    await vi.waitFor(() => expect(takenBy(backend)).toEqual(['vacated-all']), soon)
    const patterns = ['chat.1', 'chat.2', 'chat.3', 'chat.4', 'chat.5', 'chat.6']
    const stays = await Promise.all(patterns.map((pattern) => listen(a, pattern)))
    await Promise.all(patterns.map((pattern) => listen(b, pattern)))
    await listen(c, 'other.1')
    const occupied = patterns.map((pattern) => `occupied ${pattern}`)
    await vi.waitFor(() => expect(takenBy(backend).slice(1).sort()).toEqual(occupied), soon)
    await b.kill()
    await new Promise((resolve) => {
      setTimeout(resolve, TTL_MS + 2 * GRACE_MS)
    })
    expect(takenBy(backend).slice(1).sort()).toEqual(occupied)
    for (const client of stays.slice(0, 3)) client.socket.terminate()
    const vacated = patterns.map((pattern) => `vacated ${pattern}`)
    await vi.waitFor(() => expect(takenBy(backend).slice(7).sort()).toEqual(vacated.slice(0, 3)), soon)
    await a.kill()
    await vi.waitFor(() => expect(takenBy(backend).slice(7).sort()).toEqual(vacated), soon)
    // Nothing else came, but again.
    expect(takenBy(backend)).toHaveLength(13)
  })
})
