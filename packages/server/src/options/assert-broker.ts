import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../ports/broker.js'

const METHODS = [
  'start',
  'bind',
  'unbind',
  'publish',
  'read',
  'position',
  'stats',
  'stop',
] as const satisfies readonly (keyof Broker)[]
const FLAGS = [
  'history',
  'retained',
  'ordered',
  'sharedLog',
  'confirms',
  'queueGroups',
  'durable',
  'manyNodes',
] as const satisfies readonly (keyof Broker['capabilities'])[]

/**
 * Checks that an object has all members of the broker port. The conformance suite checks its behaviour.
 * @throws {WebMQError} `E_OPTION_INVALID` with the missing members.
 */
export function assertBroker(value: object | null): asserts value is Broker {
  const missing = value === null ? ['everything'] : missingOf(value)
  if (missing.length === 0) return
  throw new WebMQError('E_OPTION_INVALID', {
    detail: `broker: neither an address nor an object that implements the broker port; it lacks ${missing.join(', ')}`,
  })
}

function missingOf(value: object): string[] {
  const broker = value as Partial<Record<string, unknown>>
  const capabilities = (broker.capabilities ?? {}) as Partial<Record<string, unknown>>
  return [
    ...(typeof broker.name === 'string' ? [] : ['name']),
    ...FLAGS.filter((flag) => typeof capabilities[flag] !== 'boolean').map((flag) => `capabilities.${flag}`),
    ...METHODS.filter((method) => typeof broker[method] !== 'function'),
  ]
}
