import { WebMQError } from 'webmq-client/protocol'
import { loadLibrary, packageOfThisVersion } from '../../kernel/base/load-library.js'
import type { Broker } from '../../kernel/ports/broker.js'
import type { AddressedBrokerOptions } from './remote/options.js'

type CreateBroker = (options: AddressedBrokerOptions) => Broker | Promise<Broker>

interface BrokerPackage {
  readonly packageName: string
  /** Of its function that makes the broker. */
  readonly exportName: string
  readonly importPackage: () => Promise<unknown>
}

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
} satisfies Readonly<Record<string, BrokerPackage>>

/**
 * The broker of a package.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs the package, or the version of it that belongs to
 *   this server. What its function throws.
 */
export async function createPackagedBroker(
  { packageName, exportName, importPackage }: BrokerPackage,
  options: AddressedBrokerOptions,
): Promise<Broker> {
  const scheme = options.broker.slice(0, options.broker.indexOf(':'))
  const belonging = packageOfThisVersion(packageName)
  const namespace = await loadLibrary(packageName, `the broker ${scheme}://…`, importPackage, belonging)
  const create = (namespace as Readonly<Record<string, unknown>>)[exportName]
  if (typeof create !== 'function') throw missing(`${packageName} does not export ${exportName}`, belonging)
  try {
    return await (create as CreateBroker)(options)
  } catch (cause) {
    if (!(cause instanceof WebMQError) || cause.code !== 'E_BROKER_MISSING') throw cause
    throw missing(cause.message, belonging, cause)
  }
}

function missing(what: string, wayToInstall: string, cause?: unknown): WebMQError {
  return new WebMQError('E_BROKER_MISSING', {
    message: `${what}; ${wayToInstall}`,
    ...(cause !== undefined && { cause }),
  })
}
