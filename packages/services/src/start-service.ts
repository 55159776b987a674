import { startNats } from './nats.js'
import { startPostgres } from './postgres.js'
import { startRabbitmq } from './rabbitmq.js'
import { startRedis } from './redis.js'
import type { Service, ServiceKind } from './service.js'

/** Starts a service by name, as tests need it: NATS with JetStream. */
export async function startService(kind: ServiceKind): Promise<Service> {
  switch (kind) {
    case 'rabbitmq':
      return await startRabbitmq()
    case 'redis':
      return await startRedis()
    case 'nats':
      return await startNats({ hasJetStream: true, isPrivate: false })
    case 'postgres':
      return await startPostgres()
  }
}
