import type { FaultProxy, Service } from 'webmq-services'
import { type Parts, startService } from '../../parts.js'

/** Brokers with a program that can be killed and started again. */
export const FLEET_BROKERS = ['redis', 'nats', 'rabbitmq'] as const

export type FleetBrokerKind = (typeof FLEET_BROKERS)[number]

/** Redis writes every acknowledged message, so a restart with its data loses nothing. */
const DURABLE_REDIS = ['--appendonly', 'yes', '--appendfsync', 'always']

/** A broker of the run's own, which keeps its data, and the network between it and the nodes. */
export interface DurableBroker {
  readonly service: Service
  /** The nodes know the broker by the address of this proxy. */
  readonly network: FaultProxy
}

/** @throws {RunError} when the broker or the proxy is not available, or does not start. */
export async function startDurableBroker(kind: FleetBrokerKind, parts: Parts): Promise<DurableBroker> {
  const service = await parts.add(() =>
    startService(kind, async ({ startNats, startRabbitmq, startRedis }): Promise<Service> => {
      if (kind === 'redis') return await startRedis({ args: DURABLE_REDIS })
      return kind === 'nats'
        ? await startNats({ isPrivate: true, hasJetStream: true })
        : await startRabbitmq({ isPrivate: true })
    }),
  )
  const { url } = service
  const network = await parts.add(() =>
    startService('the network to the broker', ({ startFaultProxy }) => startFaultProxy({ url })),
  )
  return { service, network }
}
