/** Which broker the scheme of an address names. */
const SCHEMES = {
  'amqp:': 'rabbitmq',
  'amqps:': 'rabbitmq',
  'redis:': 'redis',
  'rediss:': 'redis',
  'redis+sentinel:': 'redis',
  'rediss+sentinel:': 'redis',
  'redis+cluster:': 'redis',
  'rediss+cluster:': 'redis',
  'nats:': 'nats',
  'tls:': 'nats',
  'mesh:': 'mesh',
} as const

/** A broker that comes with the server. */
export type BrokerName = 'memory' | (typeof SCHEMES)[keyof typeof SCHEMES]

/** The broker that an address names; `undefined` when it is not an address. May have several hosts, separated by commas. */
export function brokerNameOf(address: string): BrokerName | undefined {
  if (address === 'memory') return 'memory'
  const [, scheme = '', rest = ''] = /^([a-z+]+:)\/\/(.*)$/.exec(address) ?? []
  return rest !== '' && Object.hasOwn(SCHEMES, scheme) ? SCHEMES[scheme as keyof typeof SCHEMES] : undefined
}

/** What {@link brokerNameOf} takes, in words. */
export function describeAllowedBroker(): string {
  return `memory, or an address: ${Object.keys(SCHEMES)
    .map((scheme) => `${scheme}//…`)
    .join(', ')}`
}

const HIDDEN = '***'

/** `user:password@`, `user@` or nothing, then a host that nothing secret can be mistaken for. */
const HOST = /^(?:([^\s/?#@:]*)(:[^\s/?#@:]*)?@)?(\[[\da-f:.%]+\]|[\w.-]*)(:\d+)?$/i
/** Where the entries of a list repeat the scheme, as NATS allows. */
const NEXT_SCHEME = /,[a-z+]+:\/\//gi
/** Parameters of the query that hold one. */
const SECRET_PARAMETER = /(?<=[?&#][^=&#]*(?:pass|pwd|secret|token|key|auth|cred)[^=&#]*=)[^&#]*/gi

/**
 * The address for logs and errors: without passwords, and without a user that stands alone, which is how NATS writes a token.
 * Text that does not look like an address is hidden up to its last `@`: a password with a `/` or an `@` should be percent-encoded,
 * but must stay hidden if it is not.
 */
export function withoutPasswords(address: string): string {
  const [, scheme = '', rest = ''] = /^([^@/?#]*:\/\/)?(.*)$/s.exec(address.replace(NEXT_SCHEME, ',')) ?? []
  const [, authority = '', tail = ''] = /^([^/?#]*)(.*)$/s.exec(rest) ?? []
  const hosts = tail.includes('@') ? undefined : hostsOf(authority)
  if (hosts !== undefined) return `${scheme}${hosts}${tail.replace(SECRET_PARAMETER, HIDDEN)}`
  return rest.includes('@') ? `${scheme}${HIDDEN}@${afterLast(rest, '@').replace(SECRET_PARAMETER, HIDDEN)}` : address
}

/** Whether two addresses differ at most in users, passwords and other secrets. */
export function hasSamePlace(one: string, other: string): boolean {
  return placeOf(one) === placeOf(other)
}

function placeOf(address: string): string {
  return withoutPasswords(address).replace(/(?<=:\/\/|,)[^/,@]*@/g, '')
}

/** The hosts without their passwords; `undefined` when one of them may be something else. */
function hostsOf(authority: string): string | undefined {
  const hosts: string[] = []
  for (const entry of authority.split(',')) {
    const match = HOST.exec(entry)
    if (match === null) return undefined
    const [, user, password, host = '', port = ''] = match
    const identity = user === undefined ? '' : password === undefined ? `${HIDDEN}@` : `${user}:${HIDDEN}@`
    hosts.push(`${identity}${host}${port}`)
  }
  return hosts.join(',')
}

function afterLast(text: string, separator: string): string {
  return text.slice(text.lastIndexOf(separator) + separator.length)
}

/** Shorter secrets would hide half of a sentence and protect nothing. */
const MIN_SECRET_CHARS = 3

/**
 * Returns a function that removes the secrets of this address from other texts, such as errors of the library that got it.
 */
export function secretHider(address: string): (text: string) => string {
  const secrets = secretsOf(address).filter(({ length }) => length >= MIN_SECRET_CHARS)
  return (text) =>
    secrets.reduce(
      (hidden, secret) => hidden.replaceAll(secret, HIDDEN),
      text.replaceAll(address, withoutPasswords(address)),
    )
}

/** As written and decoded, the longest first: one may be part of another. */
function secretsOf(address: string): string[] {
  const [, rest = ''] = /^[^@/?#]*:\/\/(.*)$/s.exec(address.replace(NEXT_SCHEME, ',')) ?? []
  const secrets = new Set<string>(rest.match(SECRET_PARAMETER) ?? [])
  const identities = rest.includes('@') ? rest.slice(0, rest.lastIndexOf('@')) : ''
  for (const identity of identities.split(/[,@]/)) {
    const colon = identity.indexOf(':')
    // After a comma or an `@`, a host with a port looks the same. Hiding a port does no harm.
    secrets.add(colon < 0 ? identity : identity.slice(colon + 1))
  }
  for (const secret of [...secrets]) secrets.add(decoded(secret))
  return [...secrets].sort((one, other) => other.length - one.length)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Not percent-encoded: the text is the secret.
    return text
  }
}
