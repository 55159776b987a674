import { WebMQError } from 'webmq-client/protocol'
import { loadPackage, type OptionalPackage, unfitPackage } from '../../kernel/base/load-library.js'
import type { Broker } from '../../kernel/ports/broker.js'
import type { AddressedBrokerOptions } from './remote/options.js'

type CreateBroker = (options: AddressedBrokerOptions) => Broker | Promise<Broker>

/**
 * Packages of brokers, optional peers of the server. The compiler must not look for them, and bundlers must find them: a
 * literal that is said to be any text.
 */
export const BROKER_PACKAGES = {
  redis: {
    packageName: 'webmq-broker-redis',
    exportName: 'createRedisBroker',
    importPackage: () => import('webmq-broker-redis' as string),
  },
  nats: {
    packageName: 'webmq-broker-nats',
    exportName: 'createNatsBroker',
    importPackage: () => import('webmq-broker-nats' as string),
  },
  rabbitmq: {
    packageName: 'webmq-broker-rabbitmq',
    exportName: 'createRabbitmqBroker',
    importPackage: () => import('webmq-broker-rabbitmq' as string),
  },
} satisfies Readonly<Record<string, OptionalPackage>>

/**
 * The broker of a package.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs the package, or the version of it that belongs to
 *   this server. What its function throws.
 */
export async function createPackagedBroker(
  brokerPackage: OptionalPackage,
  options: AddressedBrokerOptions,
): Promise<Broker> {
  const { packageName, exportName } = brokerPackage
  const scheme = options.broker.slice(0, options.broker.indexOf(':'))
  const create = await loadPackage(brokerPackage, `the broker ${scheme}://…`)
  if (typeof create !== 'function') throw unfitPackage(packageName, `${packageName} does not export ${exportName}`)
  try {
    return await (create as CreateBroker)(options)
  } catch (cause) {
    if (!(cause instanceof WebMQError) || cause.code !== 'E_BROKER_MISSING') throw cause
    throw unfitPackage(packageName, cause.message, cause)
  }
}
