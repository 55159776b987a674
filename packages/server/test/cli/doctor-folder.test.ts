import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { checkFiles } from '../../src/doors/cli/doctor/production/files.js'
import { readFolder } from '../../src/doors/cli/doctor/production/folder.js'
import { descriptorsOf, secondsOf } from '../../src/doors/cli/doctor/production/read-value.js'
import { runInProcess } from './in-process.js'

const HOST = 'chat.example.org'
const INSTALLATIONS = [
  ['compose', 'redis'],
  ['compose', 'rabbitmq'],
  ['systemd', 'redis'],
  ['systemd', 'rabbitmq'],
  ['systemd', 'nats'],
  ['helm', 'redis'],
] as const
type Name = `${(typeof INSTALLATIONS)[number][0]}-${(typeof INSTALLATIONS)[number][1]}`

let base: string
beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), 'webmq-doctor-'))
  for (const [kind, broker] of INSTALLATIONS) {
    const flags = ['--host', HOST, '--alerts', 'https://hooks.example.org/', '--broker', broker]
    expect(await runInProcess(['init', kind, join(base, `${kind}-${broker}`), ...flags])).toMatchObject({ exitCode: 0 })
  }
})
afterAll(() => rmSync(base, { recursive: true }))

function copyOf(name: string): string {
  const folder = mkdtempSync(join(base, 'copy-'))
  cpSync(join(base, name), folder, { recursive: true })
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** The names of the checks that fail or warn. */
const problemsOf = (folder: string) =>
  [...checkFiles(readFolder(folder))].flatMap(({ status, check }) => (['fail', 'warn'].includes(status) ? [check] : []))

interface Change {
  readonly what: string
  readonly of: Name
  readonly file: string
  readonly from: string | RegExp
  readonly to: string
  /** Default: none. */
  readonly finds?: readonly string[]
}

const end = { from: /$/, of: 'systemd-redis' } as const
const dropIn = { of: 'systemd-redis', file: 'systemd/webmq@.service.d/production.conf', from: '[Service]' } as const
const compose = { of: 'compose-redis', file: 'compose.yaml' } as const
const caddy = { of: 'compose-redis', file: 'Caddyfile' } as const
const NODE = 'nofile: 65536'

// Symptom: nodes with 1,024 descriptors were fine for the doctor. Cause: it took the last `nofile` of the file, the proxy's. The same
// with other values: the last or the first line of that name, wherever it stands, or any line that is right.
const CHANGES: readonly Change[] = [
  { what: 'few descriptors of the nodes', ...compose, from: NODE, to: 'nofile: 1024', finds: ['descriptors'] },
  {
    what: 'few descriptors of the proxy',
    ...compose,
    from: /(Two per client[^\n]*\n *)nofile: 65536/,
    to: '$1nofile: 1024',
    finds: ['descriptors'],
  },
  {
    what: 'few descriptors of one node',
    ...compose,
    from: '  node-2: *node\n',
    to: '  node-2:\n    <<: *node\n    ulimits:\n      nofile: 1024\n',
    finds: ['descriptors'],
  },
  { what: 'a comment behind a value', ...compose, from: NODE, to: 'nofile: 1024 # enough', finds: ['descriptors'] },
  { what: 'soft and hard', ...compose, from: NODE, to: 'nofile:\n      soft: 1024\n      hard: 65536' },
  { what: 'a low hard limit', ...compose, from: NODE, to: 'nofile: { soft: 9, hard: 1024 }', finds: ['descriptors'] },
  {
    what: 'a long time to stop of another service',
    ...compose,
    from: /stop_grace_period: 35s([\s\S]*\n {2}prometheus:\n)/,
    to: 'stop_grace_period: 10s$1    stop_grace_period: 60s\n',
    finds: ['drain'],
  },
  {
    what: 'a short time to stop of another service',
    ...compose,
    from: '  grafana:\n',
    to: '  grafana:\n    stop_grace_period: 1s\n',
  },
  { what: 'a time in minutes', ...compose, from: 'stop_grace_period: 35s', to: 'stop_grace_period: 1m5s' },
  {
    what: 'options of another service',
    ...compose,
    from: '  grafana:\n',
    to: '  other:\n    image: other\n    environment:\n      WEBMQ_INSECURE: "true"\n\n  grafana:\n',
  },
  {
    what: 'another site before that of the nodes',
    ...caddy,
    from: /^(chat)/m,
    to: 'shop.example.org {\n\treverse_proxy shop:80 {\n\t\thealth_uri /\n\t\thealth_interval 60s\n\t}\n}\n\n$1',
  },
  { what: 'checks in milliseconds', ...caddy, from: 'health_interval 2s', to: 'health_interval 500ms' },
  { what: 'checks in minutes', ...caddy, from: 'health_interval 2s', to: 'health_interval 1m', finds: ['drain'] },
  { what: 'few descriptors by a drop-in', ...dropIn, to: '[Service]\nLimitNOFILE=1K', finds: ['descriptors'] },
  { what: 'a low and a high limit', ...dropIn, to: '[Service]\nLimitNOFILE=1024:1048576' },
  { what: 'no limit', ...dropIn, to: '[Service]\nLimitNOFILE=infinity\nTimeoutStopSec=infinity' },
  { what: 'a time in words', ...dropIn, to: '[Service]\nTimeoutStopSec=1min 30s' },
  { what: 'no restart by a drop-in', ...dropIn, to: '[Service]\nRestart=no', finds: ['nodes'] },
  {
    what: 'a list without effect',
    of: 'systemd-redis',
    file: 'systemd/webmq@.service.d/notes.txt',
    from: /$/,
    to: 'LimitNOFILE=1',
  },
  { what: 'no log by a later line', ...end, file: 'redis.conf', to: 'appendonly no\n', finds: ['persistence'] },
  {
    what: 'a later line in capitals',
    ...end,
    file: 'redis.conf',
    to: 'AppendFsync everysec\n',
    finds: ['persistence'],
  },
  { what: 'a later line that is right', of: 'systemd-redis', file: 'redis.conf', from: /^/, to: 'appendonly no\n' },
  {
    what: 'a short password by a later line',
    ...end,
    file: 'secrets/redis-password.conf',
    to: 'requirepass x\n',
    finds: ['persistence'],
  },
  {
    what: 'a later line of NATS',
    ...end,
    of: 'systemd-nats',
    file: 'nats.conf',
    to: 'sync_interval: "2m"\n',
    finds: ['persistence'],
  },
  {
    what: 'a later line of RabbitMQ',
    ...end,
    of: 'systemd-rabbitmq',
    file: 'rabbitmq.conf',
    to: 'cluster_partition_handling = ignore\n',
    finds: ['persistence'],
  },
  {
    what: 'a server for the whole network by a later line',
    ...end,
    of: 'systemd-rabbitmq',
    file: 'rabbitmq/server-1.conf',
    to: 'listeners.tcp.1 = 5682\n',
    finds: ['broker access'],
  },
  {
    what: 'two nodes beside three servers of RabbitMQ',
    of: 'systemd-rabbitmq',
    file: 'prometheus/prometheus.yml',
    from: ', "127.0.0.1:9103"',
    to: '',
    finds: ['nodes'],
  },
  {
    what: 'four nodes',
    of: 'systemd-redis',
    file: 'prometheus/prometheus.yml',
    from: '"127.0.0.1:9103"',
    to: '"127.0.0.1:9103", "127.0.0.1:9104"',
  },
]

describe('doctor --production reads the value that counts', () => {
  it.each(CHANGES)('$what', ({ of, file, from, to, finds = [] }) => {
    const folder = copyOf(of)
    const path = join(folder, file)
    const before = file.endsWith('.txt') ? '' : readFileSync(path, 'utf8')
    writeFileSync(path, before.replace(from, to))
    expect(readFileSync(path, 'utf8')).not.toBe(before)
    expect([...new Set(problemsOf(folder))]).toEqual(finds)
    expect(readFolder(folder).host).toBe(HOST)
  })

  it('takes the host of the Ingress', () => {
    const folder = copyOf('helm-redis')
    const path = join(folder, 'values.yaml')
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replace(/^ingress:/m, 'database:\n  host: db.example.org\n\ningress:'),
    )
    expect(readFolder(folder).host).toBe(HOST)
  })

  it.each([
    ['35', 35],
    ['35s', 35],
    ['500ms', 0.5],
    ['1m30s', 90],
    ['1min 30s', 90],
    ['2 minutes', 120],
    ['1h', 3_600],
    ['infinity', Number.POSITIVE_INFINITY],
    ['', 0],
    ['{{ .Values.a }}', 0],
  ])('%s is %d seconds', (text, seconds) => expect(secondsOf(text)).toBe(seconds))

  it.each([
    ['LimitNOFILE=64K', 65_536],
    ['LimitNOFILE=1:2', 2],
    ['LimitNOFILE=infinity', Number.POSITIVE_INFINITY],
    ['LimitNOFILE=5\nLimitNOFILE=', 0],
    ['#LimitNOFILE=5', 0],
    ['LimitNOFILE=many', 0],
  ])('%j allows %d descriptors', (text, count) => expect(descriptorsOf(text, 'LimitNOFILE')).toBe(count))
})

// Symptom: a folder within `secrets/` ended the doctor with a stack trace. Cause: it read each name as a file.
describe('doctor --production, a folder with', () => {
  const odd: readonly (readonly [what: string, make: (folder: string) => void, finds: readonly string[]])[] = [
    ['a folder in secrets', (at) => mkdirSync(join(at, 'secrets/old'), { mode: 0o700 }), []],
    ['a file in the place of the drop-ins', (at) => replaceBy(join(at, 'systemd/webmq@.service.d'), 'x'), ['access']],
    ['a folder in the place of a drop-in', (at) => mkdirSync(join(at, 'systemd/webmq@.service.d/a.conf')), []],
    [
      'a file in the place of secrets',
      (at) => replaceBy(join(at, 'secrets'), 'x'),
      ['options', 'secrets', 'persistence'],
    ],
    ['a folder in the place of its options', (at) => replaceBy(join(at, 'webmq.json')), ['options']],
    ['a folder in the place of the file of the broker', (at) => replaceBy(join(at, 'redis.conf')), []],
    ['a link to itself', (at) => symlinkSync(at, join(at, 'loop')), []],
    ['a link to itself in secrets', (at) => symlinkSync('self', join(at, 'secrets/self')), []],
    ['a link to nothing', (at) => symlinkSync('nothing', join(at, 'link')), []],
    ['a huge file', (at) => huge(join(at, 'dump')), []],
    ['a link to a folder of others', (at) => symlinkSync('/proc', join(at, 'others')), []],
  ]

  it.each(odd)('%s', async (_, make, finds) => {
    const folder = copyOf('systemd-redis')
    make(folder)
    const found = problemsOf(folder)
    for (const check of finds) expect(found).toContain(check)
    if (finds.length === 0) expect(found).toEqual([])
  })

  it.skipIf(process.getuid?.() === 0)('a secret of somebody else is one sentence', async () => {
    const folder = copyOf('systemd-redis')
    rmSync(join(folder, 'secrets/broker'))
    writeFileSync(join(folder, 'secrets/broker'), 'x', { mode: 0 })
    expect(() => readFolder(folder)).toThrow(/cannot read .*broker \(EACCES\)/)
  })
})

/** By a file with a text, or a folder. */
function replaceBy(path: string, text?: string): void {
  rmSync(path, { recursive: true })
  if (text === undefined) mkdirSync(path)
  else writeFileSync(path, text)
  expect(dirname(path)).not.toBe('/')
}

function huge(path: string): void {
  writeFileSync(path, '')
  truncateSync(path, 2 ** 31)
}
