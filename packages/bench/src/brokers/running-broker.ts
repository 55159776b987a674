import { randomBytes } from 'node:crypto'
import { RunError } from '../exit-codes.js'
import type { BrokerChoice, BrokerKind, ServiceBrokerKind } from './broker-choice.js'

/** Options of a server, by which it reaches the other nodes. */
export interface NodeBrokerOptions {
  readonly broker: string
  readonly brokerNamespace: string
  /** Of a node of a mesh: where the others reach it, and what they all share. */
  readonly mesh?: { readonly listen: string; readonly secret: string }
}

const NAMESPACE_BYTES = 6
const SECRET_BYTES = 32

/** What connects the servers of one run. */
export interface RunningBroker {
  readonly kind: BrokerKind
  /** @param index Which of the nodes, from 0. */
  nodeOptions(index: number): NodeBrokerOptions
  /**
   * User and system time that its own processes have used so far; `null` when there are none, as it is part of the servers, or when
   * they are not ours.
   */
  cpuSeconds(): number | null
  /** Largest resident memory of its own processes so far, added up; `null` as above. */
  peakRssBytes(): number | null
  /** Ends what the run has started; resolves when it is gone. Idempotent. */
  stop(): Promise<void>
}

/**
 * Starts a broker for so many nodes, or finds the one that is given. Every run has a namespace of its own: it neither hears nor is
 * heard by others at the same broker.
 * @param options `hasLog`: what is published is to be kept, which not every broker does by itself.
 * @throws {RunError} when it cannot be had; nothing is left then.
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
      const service = await startService(kind, hasLog)
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
 * Every node is told the places of all. One that starts is linked with all that listen by then when its start resolves, so the mesh is
 * complete when all have started.
 */
async function meshOptions(nodeCount: number, brokerNamespace: string): Promise<RunningBroker['nodeOptions']> {
  const { freePort } = await import('webmq-services')
  const places: string[] = []
  for (let index = 0; index < nodeCount; index++) places.push(`127.0.0.1:${await freePort()}`)
  const broker = `mesh://${places.join(',')}`
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  return (index) => ({ broker, brokerNamespace, mesh: { listen: places[index] ?? '', secret } })
}

/** Private, whatever the environment offers: what others do there would be in the figures. */
async function startService(kind: ServiceBrokerKind, hasLog: boolean) {
  const { startNats, startRabbitmq, startRedis } = await import('webmq-services')
  const isPrivate = true
  try {
    switch (kind) {
      case 'rabbitmq':
        return await startRabbitmq({ isPrivate })
      case 'redis':
        return await startRedis({ isPrivate })
      case 'nats':
        return await startNats({ isPrivate, hasJetStream: hasLog })
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RunError(`${kind} could not be started: ${reason}`, { cause })
  }
}
