import { WebMQError } from 'webmq-client/protocol'
import { withoutPasswords } from 'webmq-server/brokers'

export interface RedisHost {
  readonly host: string
  readonly port: number
}

export interface RedisAddress {
  /** One server; the master that sentinels report; or the masters of a cluster. */
  readonly kind: 'single' | 'sentinel' | 'cluster'
  /** At least one: the server, some sentinels, or some servers of the cluster. */
  readonly hosts: readonly RedisHost[]
  /** User of the servers, not of the sentinels. */
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  readonly isTls: boolean
  /** PEM files by purpose. */
  readonly tlsFiles: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** Name of the master at the sentinels; empty without sentinels. */
  readonly masterName: string
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
}

const ADDRESS =
  /^(redis|rediss)(\+sentinel|\+cluster)?:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/
const HOST = /^(\[[\da-fA-F:.]+\]|[^\s[\]:]+)(?::(\d{1,5}))?$/
const REDIS_PORT = 6379
const SENTINEL_PORT = 26379
const TLS_PARAMETERS = ['ca', 'cert', 'key']
const SENTINEL_PARAMETERS = ['sentinelUsername', 'sentinelPassword']

/**
 * Reads `redis://user:password@host:port/database`, `redis+sentinel://user:password@sentinel,sentinel/master/database`
 * or `redis+cluster://user:password@host,host`, with `rediss` for TLS. User, password and name of the master are
 * percent-encoded. Parameters are `sentinelUsername` and `sentinelPassword`, and with TLS the files `ca`, `cert` and
 * `key`.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function parseRedisAddress(address: string): RedisAddress {
  const invalid = (why: string) =>
    new WebMQError('E_OPTION_INVALID', { detail: `broker: ${withoutPasswords(address)}: ${why}` })
  const [, scheme, mode = '', username, password, hostList = '', path = '', query = ''] = ADDRESS.exec(address) ?? []
  if (scheme === undefined) throw invalid('not redis://user:password@host:port/database')
  const kind = mode === '' ? 'single' : mode === '+sentinel' ? 'sentinel' : 'cluster'
  const hosts = hostList.split(',').map((entry) => {
    const [, host, port] = HOST.exec(entry) ?? []
    if (host === undefined || Number(port ?? 1) > 65_535) throw invalid(`no host and port: ${entry}`)
    const defaultPort = kind === 'sentinel' ? SENTINEL_PORT : REDIS_PORT
    return { host: host.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) }
  })
  if (kind === 'single' && hosts.length > 1) throw invalid('several hosts are redis+sentinel://… or redis+cluster://…')
  const parts = path.split('/').slice(1)
  const masterName = kind === 'sentinel' ? (parts.shift() ?? '') : ''
  if (kind === 'sentinel' && masterName === '')
    throw invalid('the name of the master is missing: redis+sentinel://…/name')
  const [database = '', ...more] = parts
  if (more.length > 0 || !/^\d{0,4}$/.test(database)) throw invalid('the database is no number')
  if (kind === 'cluster' && Number(database) !== 0) throw invalid('a cluster has database 0 only')
  const parameters = new URLSearchParams(query)
  const isTls = scheme === 'rediss'
  const known = [...(isTls ? TLS_PARAMETERS : []), ...(kind === 'sentinel' ? SENTINEL_PARAMETERS : [])]
  for (const name of parameters.keys()) if (!known.includes(name)) throw invalid(`unknown parameter ${name}`)
  return {
    kind,
    hosts,
    username: decoded(username, invalid),
    password: decoded(password, invalid),
    database: Number(database),
    isTls,
    tlsFiles: Object.fromEntries([...parameters].filter(([name]) => TLS_PARAMETERS.includes(name))),
    masterName: decoded(masterName, invalid) ?? '',
    sentinelUsername: parameters.get('sentinelUsername') ?? undefined,
    sentinelPassword: parameters.get('sentinelPassword') ?? undefined,
  }
}

function decoded(text: string | undefined, invalid: (why: string) => WebMQError): string | undefined {
  if (text === undefined || text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('a % that is not part of an encoded character')
  }
}
