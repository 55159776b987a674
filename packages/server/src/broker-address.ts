/** How a broker is reached, by the scheme of its address. */
const SCHEMES = {
  'amqp:': 'rabbitmq',
  'amqps:': 'rabbitmq',
  'redis:': 'redis',
  'rediss:': 'redis',
  'nats:': 'nats',
  'tls:': 'nats',
  'mesh:': 'mesh',
} as const

/** A broker that comes with the server. */
export type BrokerName = 'memory' | (typeof SCHEMES)[keyof typeof SCHEMES]

/** Which broker an address is of; `undefined` when it is none. Several hosts may stand in it, separated by commas. */
export function brokerNameOf(address: string): BrokerName | undefined {
  if (address === 'memory') return 'memory'
  const [, scheme = '', rest = ''] = /^([a-z]+:)\/\/(.*)$/.exec(address) ?? []
  return rest !== '' && Object.hasOwn(SCHEMES, scheme) ? SCHEMES[scheme as keyof typeof SCHEMES] : undefined
}

/** What {@link brokerNameOf} takes, in words. */
export function describeAllowedBroker(): string {
  return `memory, or an address: ${Object.keys(SCHEMES)
    .map((scheme) => `${scheme}//…`)
    .join(', ')}`
}

/** The address as it may be logged and printed: without passwords. */
export function withoutPasswords(address: string): string {
  return address.replace(/(?<=[/,][^/,:@]*:)[^/,@]*(?=@)/g, '***')
}
