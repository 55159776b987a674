import type { Kind, Values } from './kinds.js'

export const BROKERS = ['redis', 'nats'] as const
export type BrokerName = (typeof BROKERS)[number]

interface BrokerSpec {
  readonly title: string
  readonly values: Values
  /** What `--broker` of the nodes is. */
  address(password: string, kind: Kind): string
  /** What the broker itself reads. */
  secrets(password: string, kind: Kind): readonly (readonly [name: string, text: string])[]
}

const REDIS_HOST: Readonly<Record<Kind, string>> = {
  systemd: '127.0.0.1',
  compose: 'broker',
  helm: 'webmq-broker',
}

/** Hosts with their ports for clients and for each other. */
const NATS_PLACES: Readonly<Record<Kind, readonly (readonly [host: string, port: number, clusterPort: number])[]>> = {
  systemd: [1, 2, 3].map((n) => ['127.0.0.1', 4220 + n, 6220 + n]),
  compose: [1, 2, 3].map((n) => [`broker-${n}`, 4222, 6222]),
  helm: [0, 1, 2].map((n) => [`webmq-broker-${n}.webmq-broker`, 4222, 6222]),
}

export const BROKER_SPECS: Readonly<Record<BrokerName, BrokerSpec>> = {
  redis: {
    title: 'Redis',
    values: {
      BROKER_PROGRAM: 'redis-server',
      BROKER_NOTE: '- A Redis that runs here already keeps its data; it must give way, because it has the same port.',
      BROKER_UNITS: 'webmq-broker.service',
      BROKER_DEPENDS: '    broker: { condition: service_healthy }',
      BROKER_FILES: '      - redis.conf',
      BROKER_SECRETS: '      - redis-password.conf=secrets/redis-password.conf',
      BROKER_OPTIONS: '',
    },
    address: (password, kind) => `redis://:${password}@${REDIS_HOST[kind]}:6379`,
    secrets: (password) => [['redis-password.conf', `requirepass ${password}`]],
  },
  nats: {
    title: 'NATS',
    values: {
      BROKER_PROGRAM: 'nats-server',
      BROKER_NOTE:
        '- NATS 2.10 or newer: Debian 13 has it; for Debian 12 put a release of nats-server at /usr/sbin/nats-server.',
      BROKER_UNITS: [1, 2, 3].map((n) => `webmq-broker@${n}.service`).join(' '),
      BROKER_DEPENDS: [1, 2, 3].map((n) => `    broker-${n}: { condition: service_healthy }`).join('\n'),
      BROKER_FILES: '      - nats.conf',
      BROKER_SECRETS: '      - nats-access.conf=secrets/nats-access.conf',
      BROKER_OPTIONS:
        '  // So long a publish waits while NATS elects another leader, which takes up to 15 s.\n  "brokerTimeoutMs": "20s",\n\n',
    },
    address: (password, kind) => {
      const hosts = NATS_PLACES[kind].map(([host, port]) => `${host}:${port}`).join(',')
      return `nats://webmq:${password}@${hosts}?replicas=3`
    },
    secrets: (password, kind) => {
      const routes = NATS_PLACES[kind].map(([host, , port]) => `    nats://routes:${password}@${host}:${port}`)
      const access = `authorization { user: webmq, password: "${password}" }
cluster {
  name: webmq
  port: 6222
  authorization { user: routes, password: "${password}" }
  routes: [
${routes.join('\n')}
  ]
}`
      return [['nats-access.conf', access]]
    },
  },
}
