import { InvalidArgumentError } from 'commander'

/** Brokers that can carry messages between the servers under test. */
export const BROKER_KINDS = ['memory', 'rabbitmq', 'redis', 'nats', 'mesh'] as const

export type BrokerKind = (typeof BROKER_KINDS)[number]

/** Brokers with a program of their own: a run starts and ends one, or uses the address of a running one. */
export type ServiceBrokerKind = 'rabbitmq' | 'redis' | 'nats'

export interface BrokerChoice {
  readonly kind: BrokerKind
  /** Address of a broker that runs already and keeps running; absent: the run starts its own. */
  readonly address?: string
}

/** As in the server's own option. A mesh has no address, because the run starts its nodes. */
const SCHEMES: Readonly<Record<string, ServiceBrokerKind>> = {
  amqp: 'rabbitmq',
  amqps: 'rabbitmq',
  redis: 'redis',
  rediss: 'redis',
  nats: 'nats',
  tls: 'nats',
}

/** Reads `rabbitmq`, or `amqp://user:password@host` for a running broker. */
export function parseBroker(text: string): BrokerChoice {
  const kind = BROKER_KINDS.find((known) => known === text)
  if (kind !== undefined) return { kind }
  const [, scheme = '', rest = ''] = /^([a-z]+):\/\/(\S+)$/.exec(text) ?? []
  const service = rest !== '' && Object.hasOwn(SCHEMES, scheme) ? SCHEMES[scheme] : undefined
  if (service === undefined) {
    const schemes = Object.keys(SCHEMES).map((known) => `${known}://…`)
    throw new InvalidArgumentError(
      `Allowed are ${BROKER_KINDS.join(', ')}, and addresses of running ones: ${schemes.join(', ')}.`,
    )
  }
  return { kind: service, address: text }
}

/** Whether the broker is part of the servers, which then carry its cost. */
export function isEmbedded(kind: BrokerKind): boolean {
  return kind === 'memory' || kind === 'mesh'
}

/**
 * The text without secrets in its addresses, for printing. It hides users with their passwords, because NATS takes a
 * token for a user, and everything up to the last `@`, because a password may contain one.
 */
export function withoutSecrets(text: string): string {
  return text.replace(/(\w+:\/\/)([^\s']+)/g, (_, scheme: string, rest: string) => {
    const [place = '', query] = rest.slice(rest.lastIndexOf('@') + 1).split('?')
    return `${scheme}${rest.includes('@') ? '***@' : ''}${place}${query === undefined ? '' : '?***'}`
  })
}
