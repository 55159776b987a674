import { InvalidArgumentError } from 'commander'

/** What can carry messages between the servers under test. */
export const BROKER_KINDS = ['memory', 'rabbitmq', 'redis', 'nats', 'mesh'] as const

export type BrokerKind = (typeof BROKER_KINDS)[number]

/** Brokers that are a program of their own: a run starts one and ends it, or is given the address of one that runs. */
export type ServiceBrokerKind = 'rabbitmq' | 'redis' | 'nats'

/** A broker as it was asked for. */
export interface BrokerChoice {
  readonly kind: BrokerKind
  /** Of one that runs already and is left alone afterwards; absent: one of the run's own. */
  readonly address?: string
}

/** As in the server's own option; a mesh has no address, for its nodes are the run's own. */
const SCHEMES: Readonly<Record<string, ServiceBrokerKind>> = {
  amqp: 'rabbitmq',
  amqps: 'rabbitmq',
  redis: 'redis',
  rediss: 'redis',
  nats: 'nats',
  tls: 'nats',
}

/** Reads `rabbitmq`, or `amqp://user:password@host` for one that runs already. */
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

/** Whether the broker is part of the servers, so that its cost is in theirs. */
export function isEmbedded(kind: BrokerKind): boolean {
  return kind === 'memory' || kind === 'mesh'
}

/**
 * The text, in which addresses may stand, without anything in them that may be a secret: for what is printed and written. Users are hidden
 * with their passwords, because NATS takes a token for a user, and everything up to the last `@`, because a password may have one.
 */
export function withoutSecrets(text: string): string {
  return text.replace(/(\w+:\/\/)([^\s']+)/g, (_, scheme: string, rest: string) => {
    const [place = '', query] = rest.slice(rest.lastIndexOf('@') + 1).split('?')
    return `${scheme}${rest.includes('@') ? '***@' : ''}${place}${query === undefined ? '' : '?***'}`
  })
}
