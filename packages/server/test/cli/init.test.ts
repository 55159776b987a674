import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkFiles } from '../../src/doors/cli/doctor/production/files.js'
import { readFolder } from '../../src/doors/cli/doctor/production/folder.js'
import { runInProcess } from './in-process.js'

const HOST = 'chat.example.org'
const ALERTS = ['--alerts', 'https://hooks.example.org/alerts']

let base: string
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'webmq-init-'))
})
afterAll(() => rmSync(base, { recursive: true }))

const init = (kind: string, name: string, ...more: string[]) =>
  runInProcess(['init', kind, join(base, name), '--host', HOST, ...ALERTS, ...more])

const problemsOf = (folder: string) =>
  checkFiles(readFolder(folder)).filter(({ status }) => status === 'fail' || status === 'warn')

describe('webmq-server init', () => {
  it.each([
    ['a kind that there is not', ['init', 'swarm', '--host', HOST], 'compose, systemd, helm'],
    ['no host', ['init', 'systemd'], '--host'],
    ['a URL as the host', ['init', 'systemd', '--host', 'https://a.example/'], 'without scheme and path'],
    ['an address as the host', ['init', 'systemd', '--host', '203.0.113.7'], 'certificates are for names'],
    ['another broker', ['init', 'compose', '--host', HOST, '--broker', 'redi'], 'did you mean redis'],
    ['any origin', ['init', 'compose', '--host', HOST, '--origin', '*'], 'is not an origin'],
    ['a certificate without its key', ['init', 'systemd', '--host', HOST, '--cert', 'a.pem'], 'give both'],
    [
      'a file that is no certificate',
      ['init', 'systemd', '--host', HOST, '--cert', import.meta.filename, '--key', import.meta.filename],
      'is not PEM',
    ],
    ['a webhook that is no URL', ['init', 'systemd', '--host', HOST, '--alerts', 'me'], 'is not a URL'],
    ['a home, which services do not see', ['init', 'systemd', '/root/webmq', '--host', HOST], '/etc/webmq'],
    ['a path with a space', ['init', 'systemd', '/tmp/a b', '--host', HOST], '/etc/webmq'],
  ])('refuses %s with exit code 2, and writes nothing', async (_, args, text) => {
    const target = args.some((arg) => arg.startsWith('/'))
      ? args
      : [...args.slice(0, 2), join(base, 'none'), ...args.slice(2)]
    const { exitCode, stderr } = await runInProcess(target)
    expect(stderr).toContain(text)
    expect(exitCode).toBe(2)
    expect(existsSync(join(base, 'none'))).toBe(false)
  })

  it('replaces no file, unless it is told to, and then keeps the secrets', async () => {
    const folder = join(base, 'twice')
    expect(await init('systemd', 'twice')).toMatchObject({ exitCode: 0, stdout: '' })
    const secretsOf = () =>
      readdirSync(join(folder, 'secrets')).map((name) => readFileSync(join(folder, 'secrets', name), 'utf8'))
    const before = secretsOf()
    writeFileSync(join(folder, 'webmq.json'), '{}')
    const again = await init('systemd', 'twice')
    expect(again).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('already') })
    expect(readFileSync(join(folder, 'webmq.json'), 'utf8')).toBe('{}')
    expect(await init('systemd', 'twice', '--force')).toMatchObject({ exitCode: 0 })
    expect(readFileSync(join(folder, 'webmq.json'), 'utf8')).toContain(HOST)
    expect(secretsOf()).toEqual(before)
    await init('systemd', 'other')
    expect(readFileSync(join(base, 'other/secrets/jwt-secret'), 'utf8')).not.toBe(
      readFileSync(join(folder, 'secrets/jwt-secret'), 'utf8'),
    )
  })

  it('writes secrets that only their owner reads, and that git does not see', async () => {
    // As an operator has it who wants to be careful.
    const before = process.umask(0o077)
    await init('systemd', 'secret')
    process.umask(before)
    const folder = join(base, 'secret')
    const modeOf = (name: string) => (statSync(join(folder, name)).mode & 0o777).toString(8)
    expect(modeOf('secrets')).toBe('700')
    expect([modeOf('.'), modeOf('grafana/provisioning'), modeOf('webmq.json')]).toEqual(['755', '755', '644'])
    const names = readdirSync(join(folder, 'secrets'))
    expect(names).toContain('api-key')
    for (const name of names) expect(modeOf(`secrets/${name}`), name).toBe('600')
    const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' })
    git('init', '--quiet')
    expect(git('status', '--porcelain', '--untracked-files=all')).not.toContain('secrets')
  })
})

interface Mistake {
  readonly name: string
  readonly check: string
  /** Default: `fail`. */
  readonly status?: 'warn'
  readonly file: string
  readonly from?: string | RegExp
  readonly to?: string
  readonly mode?: number
}

const OF_BROKER: Readonly<Record<string, readonly Mistake[]>> = {
  redis: [
    {
      name: 'Redis syncs once per second',
      check: 'persistence',
      file: 'redis.conf',
      from: 'appendfsync always',
      to: 'appendfsync everysec',
    },
    {
      name: 'Redis keeps nothing',
      check: 'persistence',
      file: 'redis.conf',
      from: 'appendonly yes',
      to: 'appendonly no',
    },
    {
      name: 'Redis forgets when it is full',
      check: 'persistence',
      file: 'redis.conf',
      from: 'noeviction',
      to: 'allkeys-lru',
    },
  ],
  nats: [
    {
      name: 'NATS syncs every two minutes',
      check: 'persistence',
      file: 'nats.conf',
      from: 'sync_interval: always',
      to: 'sync_interval: "2m"',
    },
    { name: 'one copy of the log', check: 'persistence', file: 'secrets/broker', from: '?replicas=3', to: '' },
    {
      name: 'NATS for everybody',
      check: 'persistence',
      file: 'secrets/nats-access.conf',
      from: /^authorization.*/,
      to: '',
    },
  ],
  rabbitmq: [
    {
      name: 'each side of a broken network for itself',
      check: 'persistence',
      file: 'rabbitmq.conf',
      from: 'pause_minority',
      to: 'ignore',
    },
    { name: 'two servers', check: 'persistence', file: 'rabbitmq.conf', from: /^.*nodes\.3 = .*\n/m, to: '' },
    {
      name: 'a full disk',
      check: 'persistence',
      file: 'rabbitmq.conf',
      from: /(disk_free_limit.absolute =).*/,
      to: '$1 50MB',
    },
    { name: 'all memory', check: 'persistence', file: 'rabbitmq.conf', from: /^vm_memory.*\n/m, to: '' },
    { name: 'one address', check: 'persistence', file: 'secrets/broker', from: /(@[^,]+),.*/, to: '$1' },
    {
      name: 'guest',
      check: 'broker access',
      file: 'secrets/rabbitmq-access.conf',
      from: 'default_user = webmq',
      to: 'default_user = guest',
    },
    {
      name: 'a short password',
      check: 'broker access',
      file: 'secrets/rabbitmq-access.conf',
      from: /default_pass = .*/,
      to: 'default_pass = secret',
    },
    { name: 'a cookie to guess', check: 'broker access', file: 'secrets/erlang-cookie', from: /.+/, to: 'cookie' },
    { name: 'everybody reads the cookie', check: 'secrets', file: 'secrets/erlang-cookie', mode: 0o644 },
    {
      name: 'nodes administrate',
      check: 'broker access',
      file: 'rabbitmq.conf',
      from: 'administrator = false',
      to: 'administrator = true',
    },
    {
      name: 'nodes delete the queues of others',
      check: 'broker access',
      file: 'rabbitmq.conf',
      from: 'configure = ^webmq',
      to: 'configure = .*',
    },
    {
      name: 'no metrics of the broker',
      check: 'alerts',
      file: 'enabled_plugins',
      from: /\[.*\]/,
      to: '[rabbitmq_management]',
    },
    {
      name: 'the password in the file',
      check: 'secrets',
      file: 'rabbitmq.conf',
      from: /^# The broker/,
      to: '# PASSWORD',
    },
  ],
}

/** Of a broker on one kind. */
const OF_BOTH: Readonly<Record<string, readonly Mistake[]>> = {
  'compose-rabbitmq': [
    {
      name: 'alerts of the broker that are not loaded',
      check: 'alerts',
      file: 'prometheus/prometheus.yml',
      from: '- rabbitmq.rules.yml',
      to: '',
    },
    {
      name: 'a server that Prometheus does not watch',
      check: 'alerts',
      file: 'prometheus/prometheus.yml',
      from: ', "broker-3:15692"',
      to: '',
    },
  ],
  'helm-rabbitmq': [
    {
      name: 'no alerts of the broker',
      check: 'alerts',
      file: 'kustomization.yaml',
      from: '  - broker-alerts.yaml\n',
      to: '',
    },
    { name: 'one server', check: 'persistence', file: 'broker.yaml', from: 'replicas: 3', to: 'replicas: 1' },
  ],
  'systemd-rabbitmq': [
    {
      name: 'a server for the whole network',
      check: 'broker access',
      file: 'rabbitmq/server-2.conf',
      from: 'listeners.tcp.1 = 127.0.0.1:5682',
      to: 'listeners.tcp.1 = 5682',
    },
    {
      name: 'cookies of the whole network',
      check: 'broker access',
      file: 'systemd/webmq-broker@.service',
      from: /^.*inet_dist.*$/m,
      to: '',
    },
    {
      name: 'nodes before the cluster is whole',
      check: 'persistence',
      file: 'systemd/webmq-broker@.service',
      from: /^ExecStartPost.*$/m,
      to: '',
    },
    {
      name: 'a server that Prometheus does not watch',
      check: 'alerts',
      file: 'prometheus/prometheus.yml',
      from: ', "127.0.0.1:15693"',
      to: '',
    },
  ],
}

/** One line each, as a tired operator would change it. */
const MISTAKES: readonly Mistake[] = [
  {
    name: 'tokens without exp',
    check: 'tokens',
    file: 'webmq.json',
    from: '"requireExp": true',
    to: '"requireExp": false',
  },
  { name: 'tokens of others', check: 'tokens', file: 'webmq.json', from: /"audience".*\n/, to: '\n' },
  { name: 'pages of all', check: 'access', file: 'webmq.json', from: /"origins".*/, to: '"origins": ["*"],' },
  { name: 'no limit of publishes', check: 'limits', file: 'webmq.json', from: /"maxPublishesPerSecond".*/, to: '' },
  {
    name: 'a log smaller than its rule',
    check: 'options',
    status: 'warn',
    file: 'webmq.json',
    from: /"historyMaxMessages".*/,
    to: '"historyMaxMessages": 500,',
  },
  {
    name: 'no time for the proxy',
    check: 'drain',
    file: 'webmq.json',
    from: '"drainDelayMs": "5s"',
    to: '"drainDelayMs": "1s"',
  },
  { name: 'no audit log', check: 'audit', file: 'webmq.json', from: '"auditLog": "stderr"', to: '"auditLog": "off"' },
  {
    name: 'an option that there is not',
    check: 'options',
    file: 'webmq.json',
    from: '"auditLevel"',
    to: '"auditLevels"',
  },
  { name: 'everybody reads the API key', check: 'secrets', file: 'secrets/api-key', mode: 0o644 },
  { name: 'secrets in git', check: 'secrets', file: '.gitignore', from: '/secrets/', to: '' },
]

/** Of a proxy and a Prometheus of ours. */
const OF_MACHINES: readonly Mistake[] = [
  {
    name: 'a rule file that is not loaded',
    check: 'alerts',
    file: 'prometheus/prometheus.yml',
    from: 'webmq.rules.yml',
    to: 'rules.yml',
  },
  {
    name: 'an alert for each node',
    check: 'alerts',
    file: 'prometheus/alertmanager.yml',
    from: '[alertname]',
    to: '[alertname, instance]',
  },
  { name: 'metrics for all', check: 'proxy', file: 'Caddyfile', from: 'respond @operators 404', to: '' },
  {
    name: 'clients for nodes that leave',
    check: 'proxy',
    file: 'Caddyfile',
    from: 'health_uri /ready',
    to: 'health_uri /health',
  },
]

const OF_KIND: Readonly<Record<string, readonly Mistake[]>> = {
  compose: [
    ...OF_MACHINES,
    { name: 'few descriptors', check: 'descriptors', file: 'compose.yaml', from: /nofile: 65536/g, to: 'nofile: 1024' },
    {
      name: 'killed while it drains',
      check: 'drain',
      file: 'compose.yaml',
      from: 'stop_grace_period: 35s',
      to: 'stop_grace_period: 10s',
    },
    { name: 'two nodes behind the proxy', check: 'nodes', file: 'Caddyfile', from: ' node-3:8080', to: '' },
    {
      name: 'the password in the file',
      check: 'secrets',
      file: 'broker.yaml',
      from: /^# The broker\./,
      to: '# PASSWORD',
    },
  ],
  helm: [
    {
      name: 'killed while it drains',
      check: 'drain',
      file: 'values.yaml',
      from: 'replicas: 3',
      to: 'replicas: 3\nterminationGracePeriodSeconds: 10',
    },
    { name: 'two nodes', check: 'nodes', file: 'values.yaml', from: 'replicas: 3', to: 'replicas: 2' },
    {
      name: 'an alert for each node',
      check: 'alerts',
      file: 'alerts.yaml',
      from: 'groupBy: [alertname]',
      to: 'groupBy: [instance]',
    },
    { name: 'no TLS', check: 'proxy', file: 'values.yaml', from: 'tlsSecret: webmq-tls', to: 'tlsSecret: ""' },
  ],
  systemd: [
    ...OF_MACHINES,
    {
      name: 'few descriptors',
      check: 'descriptors',
      file: 'systemd/webmq@.service.d/production.conf',
      from: '[Service]',
      to: '[Service]\nLimitNOFILE=1024',
    },
    {
      name: 'killed while it drains',
      check: 'drain',
      file: 'systemd/webmq@.service',
      from: /TimeoutStopSec=.*/,
      to: 'TimeoutStopSec=10s',
    },
    { name: 'two nodes', check: 'nodes', file: 'systemd/webmq.target', from: ' webmq@3.service', to: '' },
    {
      name: 'a password in the unit',
      check: 'options',
      file: 'systemd/webmq@.service.d/production.conf',
      from: 'WEBMQ_API_KEY_FILE=%d/api-key',
      to: 'WEBMQ_API_KEY=hunter2',
    },
  ],
}

const FOLDERS = Object.entries(OF_KIND).flatMap(([kind, own]) =>
  Object.entries(OF_BROKER).map(
    ([broker, ofBroker]) =>
      [
        `${kind}-${broker}`,
        kind,
        broker,
        [...MISTAKES, ...own, ...ofBroker, ...(OF_BOTH[`${kind}-${broker}`] ?? [])],
      ] as const,
  ),
)

describe.each(FOLDERS)('doctor --production, the folder %s', (name, kind, broker, mistakes) => {
  beforeAll(async () => {
    expect(await init(kind, name, '--broker', broker)).toMatchObject({ exitCode: 0 })
  })

  it('has nothing to say about the folder as it was written', () => {
    expect(problemsOf(join(base, name))).toEqual([])
  })

  it('says that nobody is told of alerts, when nobody is', async () => {
    await runInProcess(['init', kind, join(base, `${name}-silent`), '--host', HOST, '--broker', broker])
    expect(problemsOf(join(base, `${name}-silent`))).toMatchObject([{ check: 'alerts', status: 'warn' }])
  })

  it(`finds each of ${mistakes.length} mistakes, and nothing else`, () => {
    expect(mistakes.length).toBeGreaterThanOrEqual(12)
    for (const { name: mistake, check, status: expected = 'fail', file, from, to, mode } of mistakes) {
      const folder = join(base, `${name}-mistake`)
      cpSync(join(base, name), folder, { recursive: true })
      const path = join(folder, file)
      if (mode !== undefined) chmodSync(path, mode)
      if (from !== undefined) {
        const before = readFileSync(path, 'utf8')
        const password = readFileSync(join(folder, 'secrets/broker-password'), 'utf8').trim()
        writeFileSync(path, before.replace(from, (to ?? '').replace('PASSWORD', password)))
        expect(readFileSync(path, 'utf8'), mistake).not.toBe(before)
      }
      const found = problemsOf(folder)
      rmSync(folder, { recursive: true })
      expect(new Set(found.map((each) => each.check)), mistake).toEqual(new Set([check]))
      expect(
        found.map(({ status }) => status),
        mistake,
      ).toEqual(found.map(() => expected))
    }
  })
})

const HOSTS = String.raw`[\w.-]+:\d+(?:,[\w.-]+:\d+){2}`
const ADDRESSES: Readonly<Record<string, RegExp>> = {
  redis: /^redis:\/\/:\S{43}@[\w.-]+:6379$/,
  nats: new RegExp(String.raw`^nats://webmq:\S{43}@${HOSTS}\?replicas=3$`),
  rabbitmq: new RegExp(String.raw`^amqp://webmq:\S{43}@${HOSTS}$`),
}

describe('the kinds of installations', () => {
  it.each(Object.keys(OF_BROKER))(
    'give their nodes the same values with %s, but for addresses and secrets',
    async (name) => {
      const values = []
      for (const kind of Object.keys(OF_KIND)) {
        await init(kind, `same-${kind}-${name}`, '--broker', name)
        const { options, defect } = readFolder(join(base, `same-${kind}-${name}`))
        expect(defect).toBeUndefined()
        const { host, port, adminHost, adminPort, broker, jwt, apiKeys, ...same } = options ?? fail(kind)
        expect({ adminPort, apiKeys: apiKeys.length }, kind).toEqual({ adminPort: expect.any(Number), apiKeys: 1 })
        expect([host, port, adminHost].join(' '), kind).toMatch(/^\S+ \d+ \S+$/)
        expect(broker, kind).toMatch(ADDRESSES[name] ?? fail(name))
        values.push({ ...same, jwt: { ...jwt, secret: '' } })
      }
      const [one, ...others] = values
      expect(one).toMatchObject({ maxConnections: 10_000, jwt: { requireExp: true, audience: HOST } })
      for (const other of others) expect(other).toEqual(one)
    },
  )
})

function fail(what: string): never {
  throw new Error(what)
}
