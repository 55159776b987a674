import { WebMQError } from 'webmq-client/protocol'

export interface RabbitmqHost {
  readonly hostname: string
  readonly port: number
  readonly username: string
  readonly password: string
}

export interface RabbitmqTls {
  /** PEM. */
  readonly files: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** Name that the certificate must be for; default: the host. */
  readonly servername: string | undefined
  readonly isVerified: boolean
}

export interface RabbitmqAddress {
  /** At least one, in the order of attempts. */
  readonly hosts: readonly RabbitmqHost[]
  readonly vhost: string
  /** `undefined` for `amqp:`. */
  readonly tls: RabbitmqTls | undefined
  /** For logs: without users and passwords. */
  readonly text: string
}

const DEFAULT_USER = 'guest'
const PORTS = { amqp: 5672, amqps: 5671 } as const
const ADDRESS = /^(amqps?):\/\/([^/?#]+)(?:\/([^/?#]*))?(?:\?([^#]*))?$/
const HOST = /^(?:([^:@]*)(?::([^:@]*))?@)?(\[[\da-f:.]+\]|[^\s:@[\]]+)(?::(\d{1,5}))?$/i
/** Names of RabbitMQ's own URI query parameters. */
const PARAMETERS = ['cacertfile', 'certfile', 'keyfile', 'server_name_indication', 'verify'] as const

/**
 * Reads `amqp[s]://user:password@host:port,host:port/vhost?cacertfile=…`. Only the host is required. Hosts without a
 * user of their own get the first user and password. Characters that are special in a URL are percent-encoded.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`; its message repeats nothing of the address.
 */
export function parseAddress(address: string): RabbitmqAddress {
  const [, scheme, authority = '', vhost = '', query = ''] = ADDRESS.exec(address) ?? []
  if (scheme !== 'amqp' && scheme !== 'amqps') throw invalid('amqp://user:password@host:port,…/vhost')
  const parsed = authority.split(',').map((entry) => HOST.exec(entry))
  const shared = parsed.find((match) => match?.[1] !== undefined)
  const hosts = parsed.map((match): RabbitmqHost => {
    if (match === null) throw invalid('a host is user:password@name:port, its parts percent-encoded')
    const [, user = shared?.[1], password = match[1] === undefined ? shared?.[2] : undefined, host = '', port] = match
    if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) throw invalid('a port is 1 to 65535')
    return {
      hostname: host.replace(/^\[|\]$/g, ''),
      port: port === undefined ? PORTS[scheme] : Number(port),
      username: user === undefined ? DEFAULT_USER : decoded(user),
      password: password === undefined ? (user === undefined ? DEFAULT_USER : '') : decoded(password),
    }
  })
  const hostTexts = hosts.map(({ hostname, port }) => `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`)
  return {
    hosts,
    // Empty means the default, as in amqplib: RabbitMQ has no virtual host with an empty name.
    vhost: vhost === '' ? '/' : decoded(vhost),
    tls: scheme === 'amqps' ? parseTls(query) : noTls(query),
    text: `${scheme}://${hostTexts.join(',')}${vhost === '' ? '' : `/${vhost}`}`,
  }
}

function parseTls(query: string): RabbitmqTls {
  const parameters = new URLSearchParams(query)
  for (const name of parameters.keys()) {
    if (!PARAMETERS.some((known) => known === name)) throw invalid(`its query takes ${PARAMETERS.join(', ')}`)
  }
  const verify = parameters.get('verify') ?? 'verify_peer'
  if (verify !== 'verify_peer' && verify !== 'verify_none') throw invalid('verify is verify_peer or verify_none')
  const text = (name: (typeof PARAMETERS)[number]) => parameters.get(name) || undefined
  const [ca, cert, key] = [text('cacertfile'), text('certfile'), text('keyfile')]
  return {
    files: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
    servername: text('server_name_indication'),
    isVerified: verify === 'verify_peer',
  }
}

function noTls(query: string): undefined {
  if (query !== '') throw invalid('its query is for amqps: alone')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw invalid('a part of it is not percent-encoded', cause)
  }
}

function invalid(detail: string, cause?: unknown): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail: `broker address: ${detail}`, cause })
}
