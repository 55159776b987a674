import type { ServiceKind } from '../service.js'

/** A release of a broker that tests can get beside that of the system. */
export interface BrokerVersion {
  readonly kind: ServiceKind
  /** What `version` of the options and `WEBMQ_TEST_…_VERSION` say: `4.0`, `valkey-8.1`, `newest`. */
  readonly version: string
  readonly program: string
  readonly image: string
  readonly from: { readonly suite: 'trixie' | 'sid'; readonly debianPackage: string } | { readonly goQuery: string }
}

/** Debian 13 is trixie; sid is what comes after it, and moves. */
export const BROKER_VERSIONS: readonly BrokerVersion[] = [
  rabbitmq('4.0', 'trixie'),
  rabbitmq('4.3', 'sid'),
  redis('8.0', 'trixie'),
  {
    kind: 'redis',
    version: 'valkey-8.1',
    program: 'valkey-server',
    image: 'valkey/valkey:8.1-alpine',
    from: { suite: 'trixie', debianPackage: 'valkey-server' },
  },
  nats('2.10', { suite: 'trixie', debianPackage: 'nats-server' }),
  nats('2.14', { goQuery: 'v2.14' }),
  nats('newest', { goQuery: 'latest' }),
]

function rabbitmq(version: string, suite: 'trixie' | 'sid'): BrokerVersion {
  const program = 'rabbitmq-server'
  return { kind: 'rabbitmq', version, program, image: `rabbitmq:${version}`, from: { suite, debianPackage: program } }
}

function redis(version: string, suite: 'trixie' | 'sid'): BrokerVersion {
  const program = 'redis-server'
  return { kind: 'redis', version, program, image: `redis:${version}-alpine`, from: { suite, debianPackage: program } }
}

function nats(version: string, from: BrokerVersion['from']): BrokerVersion {
  const image = version === 'newest' ? 'nats:alpine' : `nats:${version}-alpine`
  return { kind: 'nats', version, program: 'nats-server', image, from }
}

/** Whether `4.0.5` is a `4` or `4.0`, and `valkey-8.1.1` a `valkey-8`. */
export function fits(number: string, asked: string): boolean {
  return number === asked || number.startsWith(`${asked}.`)
}

/** The first release of a kind that is asked for in whole or in part. */
export function findVersion(kind: ServiceKind, asked: string): BrokerVersion | undefined {
  return BROKER_VERSIONS.find((row) => row.kind === kind && fits(row.version, asked))
}
