import type { Kind, Values } from './kinds.js'

export const BROKERS = ['redis', 'nats', 'rabbitmq'] as const
export type BrokerName = (typeof BROKERS)[number]

interface BrokerSpec {
  readonly title: string
  readonly values: Values
  /** What `--broker` of the nodes is. */
  address(password: string, kind: Kind): string
  /** What the broker itself reads. */
  secrets(password: string, kind: Kind): readonly (readonly [name: string, text: string])[]
  /** What it needs besides the password, as random. */
  readonly ownSecrets?: readonly string[]
  /** Names of its servers. */
  servers?(kind: Kind): readonly string[]
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

/** Each server with its host and port for clients. On one machine they differ by their ports alone. */
const RABBITMQ_PLACES: Readonly<Record<Kind, readonly (readonly [server: string, place: string])[]>> = {
  systemd: [1, 2, 3].map((n) => [`webmq-${n}@localhost`, `127.0.0.1:568${n}`]),
  compose: [1, 2, 3].map((n) => [`rabbit@broker-${n}`, `broker-${n}:5672`]),
  helm: [0, 1, 2].map((n) => [`rabbit@webmq-broker-${n}.webmq-broker`, `webmq-broker-${n}.webmq-broker:5672`]),
}

const THREE = [1, 2, 3]
const AWAIT_THREE = THREE.map((n) => `    broker-${n}: { condition: service_healthy }`).join('\n')
/** What a broker without metrics and waiting adds. */
const NOTHING_MORE: Values = { BROKER_RULE_FILE: '', BROKER_METRICS: '', BROKER_RESOURCES: '', BROKER_WAIT: '' }

export const BROKER_SPECS: Readonly<Record<BrokerName, BrokerSpec>> = {
  redis: {
    title: 'Redis',
    values: {
      ...NOTHING_MORE,
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
      ...NOTHING_MORE,
      BROKER_PROGRAM: 'nats-server',
      BROKER_NOTE:
        '- NATS 2.10 or newer: Debian 13 has it; for Debian 12 put a release of nats-server at /usr/sbin/nats-server.',
      BROKER_UNITS: THREE.map((n) => `webmq-broker@${n}.service`).join(' '),
      BROKER_DEPENDS: AWAIT_THREE,
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
  rabbitmq: {
    title: 'RabbitMQ',
    values: {
      BROKER_PROGRAM: 'rabbitmq-server',
      BROKER_NOTE:
        '- `HOME=/var/lib/webmq-broker-1 ERL_EPMD_PORT=4370 /usr/lib/rabbitmq/bin/rabbitmqctl --node webmq-1@localhost cluster_status` asks a server; each has a folder of its own.',
      BROKER_UNITS: ['webmq-epmd.service', ...THREE.map((n) => `webmq-broker@${n}.service`)].join(' '),
      BROKER_DEPENDS: AWAIT_THREE,
      BROKER_FILES: '      - rabbitmq.conf\n      - enabled_plugins',
      BROKER_SECRETS:
        '      - rabbitmq-access.conf=secrets/rabbitmq-access.conf\n      - erlang-cookie=secrets/erlang-cookie',
      BROKER_OPTIONS: '',
      BROKER_RULE_FILE:
        '  # Those of RabbitMQ: memory, disk, and servers that do not see each other.\n  - rabbitmq.rules.yml\n',
      BROKER_METRICS:
        '  - job_name: rabbitmq\n    static_configs:\n      # The Prometheus plugin of each server.\n      - targets: [@RABBITMQ_METRICS@]\n',
      BROKER_RESOURCES: '  - broker-alerts.yaml\n',
      BROKER_WAIT:
        'kubectl rollout status statefulset webmq-broker   # nodes that start earlier make a log with fewer copies\n',
    },
    address: (password, kind) => {
      const hosts = RABBITMQ_PLACES[kind].map(([, place]) => place)
      return `amqp://webmq:${password}@${hosts.join(',')}`
    },
    secrets: (password) => [['rabbitmq-access.conf', `default_user = webmq\ndefault_pass = ${password}`]],
    ownSecrets: ['erlang-cookie'],
    servers: (kind) => RABBITMQ_PLACES[kind].map(([server]) => server),
  },
}
