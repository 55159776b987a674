import { randomBytes } from 'node:crypto'
import { startService } from '../parts.js'
import type { BrokerChoice, BrokerKind, ServiceBrokerKind } from './broker-choice.js'

export interface NodeBrokerOptions {
  readonly broker: string
  readonly brokerNamespace: string
  /** Options of a mesh node: its address for the others, and the shared secret. */
  readonly mesh?: { readonly listen: string; readonly secret: string }
}

const NAMESPACE_BYTES = 6
const SECRET_BYTES = 32

export interface RunningBroker {
  readonly kind: BrokerKind
  /** @param index Which of the nodes, from 0. */
  nodeOptions(index: number): NodeBrokerOptions
  /**
   * User and system time of its own processes so far. `null` when it is part of the servers or was given by address.
   */
  cpuSeconds(): number | null
  /** Largest resident memory of its own processes so far, summed; `null` as above. */
  peakRssBytes(): number | null
  /** Ends the broker if the run started it; resolves when it is gone. Idempotent. */
  stop(): Promise<void>
}

/**
 * Starts a broker for this many nodes, or uses the given one. Every run has a namespace of its own, which separates it
 * from others at the same broker.
 * @param options `hasLog`: the broker must keep messages, which some do only when told to.
 * @throws {RunError} when it is not available; nothing is left then.
 */
export async function startBroker(
  { kind, address }: BrokerChoice,
  nodeCount: number,
  { hasLog = false }: { readonly hasLog?: boolean } = {},
): Promise<RunningBroker> {
  const brokerNamespace = `bench-${randomBytes(NAMESPACE_BYTES).toString('hex')}`
  const noProcess = { kind, cpuSeconds: () => null, peakRssBytes: () => null, stop: async () => undefined }
  if (address !== undefined) return { ...noProcess, nodeOptions: () => ({ broker: address, brokerNamespace }) }
  switch (kind) {
    case 'memory':
      return { ...noProcess, nodeOptions: () => ({ broker: 'memory', brokerNamespace }) }
    case 'mesh':
      return { ...noProcess, nodeOptions: await meshOptions(nodeCount, brokerNamespace) }
    default: {
      const service = await startPrivate(kind, hasLog)
      return {
        kind,
        nodeOptions: () => ({ broker: service.url, brokerNamespace }),
        cpuSeconds: () => service.cpuSeconds() ?? null,
        peakRssBytes: () => service.peakRssBytes() ?? null,
        stop: async () => await service.stop(),
      }
    }
  }
}

/**
 * Every node gets the addresses of all. When a node's start resolves, it is linked with all nodes that listen by then,
 * so the mesh is complete once all have started.
 */
async function meshOptions(nodeCount: number, brokerNamespace: string): Promise<RunningBroker['nodeOptions']> {
  const places = await startService('a mesh', async ({ freePort }) => {
    const ports = Array.from({ length: nodeCount }, () => freePort())
    return (await Promise.all(ports)).map((port) => `127.0.0.1:${port}`)
  })
  const broker = `mesh://${places.join(',')}`
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  return (index) => ({ broker, brokerNamespace, mesh: { listen: places[index] ?? '', secret } })
}

/** Always private: other traffic on a shared service would distort the figures. */
async function startPrivate(kind: ServiceBrokerKind, hasLog: boolean) {
  const isPrivate = true
  return await startService(kind, async ({ startNats, startRabbitmq, startRedis }) => {
    if (kind === 'rabbitmq') return await startRabbitmq({ isPrivate })
    return kind === 'redis' ? await startRedis({ isPrivate }) : await startNats({ isPrivate, hasJetStream: hasLog })
  })
}
