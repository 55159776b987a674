import { WebMQError } from 'webmq-client/protocol'

export interface NatsAddress {
  /** At least one; any of them will do. */
  readonly hosts: readonly NatsHost[]
  /** Whether the connection must be encrypted. A server can require it too. */
  readonly needsTls: boolean
  readonly identity: NatsIdentity
  /** PEM files. */
  readonly tlsFiles: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** Number of servers that store the log's stream; `undefined` if the address does not say. */
  readonly replicaCount: number | undefined
  /** Without credentials, for log and errors. */
  readonly text: string
}

export interface NatsHost {
  /** A name or an address, without brackets. */
  readonly name: string
  readonly port: number
}

/** Credentials of a node. Files are read for every connection, so that they can be renewed. */
export type NatsIdentity =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'user'; readonly user: string; readonly password: string }
  | { readonly kind: 'token'; readonly token: string }
  /** A file with a JWT and the seed of its key, as `nsc` writes it. */
  | { readonly kind: 'creds'; readonly file: string }
  /** A file with the seed of an nkey. */
  | { readonly kind: 'nkey'; readonly file: string }

const DEFAULT_PORT = 4222
const PARAMETERS = ['creds', 'nkey', 'ca', 'cert', 'key', 'replicas']
const HOST = /^(\[[\da-f:.%]+\]|[\w.-]+)(?::(\d{1,5}))?$/i
const NEXT_SCHEME = /,(?:nats|tls):\/\//g

/**
 * Reads
 * `nats://[user:password@|token@]host[:port][,host[:port]…][?creds=file|nkey=file][&ca=file][&cert=file&key=file][&replicas=3]`,
 * or the same with `tls://`. Each host may repeat the scheme and the credentials; they must be the same for all.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`; its message contains no credentials.
 */
export function parseNatsAddress(address: string): NatsAddress {
  const match = /^(nats|tls):\/\/([^/?#]*)\/?(?:\?([^#]*))?$/.exec(address.replace(NEXT_SCHEME, ','))
  if (match === null) throw invalid('nats://[user:password@|token@]host[:port][,…][?creds=file]')
  const [, scheme = '', authority = '', query = ''] = match
  const entries = authority.split(',').map((entry) => entry.split('@'))
  const hosts = entries.map((parts) => hostOf(parts.at(-1) ?? ''))
  const identities = new Set(entries.filter(({ length }) => length > 1).map((parts) => parts.slice(0, -1).join('@')))
  if (identities.size > 1 || (identities.size > 0 && entries[0]?.length === 1))
    throw invalid('credentials at the first host, and no others at the rest')
  const parameters = parametersOf(query)
  const { ca, cert, key, replicas } = parameters
  if ((cert === undefined) !== (key === undefined)) throw invalid('cert and key together')
  if (replicas !== undefined && !/^[1-5]$/.test(replicas)) throw invalid('replicas=1 to replicas=5')
  return {
    hosts,
    needsTls: scheme === 'tls' || ca !== undefined || cert !== undefined,
    identity: identityOf([...identities][0], parameters),
    tlsFiles: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
    replicaCount: replicas === undefined ? undefined : Number(replicas),
    text: `${scheme}://${hosts.map(textOf).join(',')}`,
  }
}

export function textOf({ name, port }: NatsHost): string {
  return `${name.includes(':') ? `[${name}]` : name}:${port}`
}

function hostOf(text: string): NatsHost {
  const match = HOST.exec(text)
  const port = match?.[2] === undefined ? DEFAULT_PORT : Number(match[2])
  // The detail does not repeat it: it may be part of a password with a comma.
  if (match?.[1] === undefined || port > 65_535)
    throw invalid('host or host:port behind the credentials, and between commas')
  return { name: match[1].replace(/^\[|\]$/g, ''), port }
}

function parametersOf(query: string): { readonly [name: string]: string | undefined } {
  const parameters = new URLSearchParams(query)
  for (const name of parameters.keys()) {
    if (!PARAMETERS.includes(name)) throw invalid(`only these parameters: ${PARAMETERS.join(', ')}`)
  }
  return Object.fromEntries(parameters)
}

function identityOf(userInfo: string | undefined, { creds, nkey }: ReturnType<typeof parametersOf>): NatsIdentity {
  const given = [userInfo, creds, nkey].filter((each) => each !== undefined)
  if (given.length > 1) throw invalid('one of user, token, creds and nkey')
  if (creds !== undefined) return { kind: 'creds', file: creds }
  if (nkey !== undefined) return { kind: 'nkey', file: nkey }
  if (userInfo === undefined) return { kind: 'nobody' }
  const colon = userInfo.indexOf(':')
  if (colon < 0) return { kind: 'token', token: decoded(userInfo) }
  return { kind: 'user', user: decoded(userInfo.slice(0, colon)), password: decoded(userInfo.slice(colon + 1)) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // The cause is left out: its message would show the credentials.
    throw invalid('credentials that are percent-encoded')
  }
}

function invalid(allowed: string): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail: `broker: a NATS address must have ${allowed}` })
}
