import type { FaultProxy, Service } from 'webmq-services'
import { RunError } from '../../exit-codes.js'
import { importBeside } from '../../missing-package.js'

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
  /** Ends both. Idempotent. */
  stop(): Promise<void>
}

/** @throws {RunError} when the broker or the proxy is not available, or does not start; nothing is left then. */
export async function startDurableBroker(kind: FleetBrokerKind): Promise<DurableBroker> {
  const services = await importBeside(() => import('webmq-services'), 'a fleet')
  const starters = {
    redis: () => services.startRedis({ args: DURABLE_REDIS }),
    nats: () => services.startNats({ isPrivate: true, hasJetStream: true }),
    rabbitmq: () => services.startRabbitmq({ isPrivate: true }),
  } as const satisfies Record<FleetBrokerKind, () => Promise<Service>>
  const service = await orRunError(kind, starters[kind]())
  try {
    const network = await orRunError('the network to the broker', services.startFaultProxy({ url: service.url }))
    return {
      service,
      network,
      async stop() {
        await network.stop()
        await service.stop()
      },
    }
  } catch (error) {
    await service.stop()
    throw error
  }
}

async function orRunError<T>(what: string, starting: Promise<T>): Promise<T> {
  try {
    return await starting
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RunError(`${what} could not be started: ${reason}`, { cause })
  }
}
