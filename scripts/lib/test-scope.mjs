// What `npm test` leaves to `npm run test:all`: tests that take long and rarely tell more. Some of them take turns, by
// commit, so that a few days of commits run all of them; a change has its turn first.
import { execFileSync, spawnSync } from 'node:child_process'
import { ROOT } from './steps.mjs'

/**
 * Only with `npm run test:all`: plays of the bench but two, most damages of logs, the packages as users install them, two
 * versions side by side, defects that are put in again, 100,000 rows of a database, the heap after 20,000 names at each door and in
 * each cache, the checker's long play, a minute of comings and goings, the clients of all languages while connections are cut, the
 * packages for Python and Go, the client in other runtimes, the site, the commands of the docs,
 * the Helm chart, and a Prometheus that scrapes a node in each state.
 */
const ONLY_ALL = [
  ...['auction', 'benchmark', 'deployment', 'fleet', 'history', 'played-clients', 'scenarios'].map(
    (name) => `packages/bench/test/${name}.test.ts`,
  ),
  ...['nats', 'nats-cluster', 'rabbitmq', 'redis', 'redis-cluster'].map(
    (name) => `packages/server/test/brokers/damaged-log-${name}.test.ts`,
  ),
  'packages/server/test/brokers/outbox-100k.test.ts',
  'packages/server/test/memory-of-caches.test.ts',
  'packages/server/test/memory-of-doors.test.ts',
  'test/packages.test.ts',
  'test/clients/cuts.test.ts',
  'test/clients/go-package.test.ts',
  'test/clients/python-package.test.ts',
  'test/clients/runtimes.test.ts',
  'test/checker/checker.test.ts',
  'test/churn/churn.test.ts',
  'test/deploy/helm.test.ts',
  'test/docs/shell.test.ts',
  'test/seeded/mutants.test.ts',
  'test/site/site.test.ts',
  'test/skew/skew.test.ts',
  'test/states/prometheus.test.ts',
]

const brokers = (...names) => names.map((name) => `packages/server/test/brokers/${name}.test.ts`)
const server = (...names) => names.map((name) => `packages/server/test/${name}.test.ts`)
const endToEnd = (...names) => names.map((name) => `test/${name}.test.ts`)

/** Of each list, `npm test` runs one file. Those of a list prove something alike, or start the same costly program. */
const IN_TURNS = [
  endToEnd('history/memory', 'history/mesh', 'history/nats', 'history/rabbitmq', 'history/redis'),
  endToEnd('history/slow-listener', 'history/slow-patterns'),
  endToEnd('streams/memory', 'streams/nats', 'streams/rabbitmq', 'streams/redis'),
  brokers('lost-end-nats-cluster', 'lost-end-rabbitmq', 'lost-end-redis-cluster', 'redis-lost-end'),
  brokers('nats-broker', 'rabbitmq-broker'),
  brokers('redis-broker', 'redis-cluster'),
  brokers('nats-log', 'rabbitmq-log', 'redis-log'),
  brokers('nats-faults', 'redis-faults'),
  // A RabbitMQ of their own takes six seconds of CPU time to start.
  brokers('rabbitmq-lost-stream', 'rabbitmq-operators', 'rabbitmq-refusals', 'rabbitmq-tls'),
  brokers('mesh-faults', 'other-broker', 'outbox-faults', 'rabbitmq-faults', 'redis-promotion'),
  brokers('outbox', 'outbox-access'),
  [...brokers('durable-nodes', 'history-change', 'presence'), 'test/queue-groups.test.ts'],
  brokers('behind', 'stopping'),
  brokers('foreign-messages', 'foreign-texts', 'queue-groups'),
  [
    ...server('streams-http', 'durable-streams/suite'),
    ...brokers('durable-suite-nats', 'durable-suite-rabbitmq', 'durable-suite-redis'),
  ],
  server('transports/native-flood', 'transports/native-threads', 'transports/ten-thousand'),
  [...server('transports/ws'), 'packages/transport-uws/test/conformance.test.ts'],
  server('texts/reading', 'texts/writing'),
  server('bad-input', 'hostile', 'http-api-hostile'),
  ['load-balancer', 'services', 'versions'].map((name) => `packages/services/test/${name}.test.ts`),
  endToEnd('clients/conformance', 'docs/compile'),
  endToEnd('model/model', 'seeded/seeded'),
  endToEnd('seeded/wire/nats/model', 'seeded/wire/rabbitmq/suites', 'seeded/wire/redis/model'),
  endToEnd('checker/cli', 'checker/clients', 'checker/elsewhere'),
  ['packages/check/test/judge-mutations.test.ts', 'test/release.test.ts'],
  endToEnd('admin', 'demo', 'tls'),
  [
    ...endToEnd('devtools', 'vite-plugin'),
    ...['assistant', 'auction', 'chat', 'dashboard', 'whiteboard', 'worker'].map(
      (name) => `test/examples/${name}.test.ts`,
    ),
  ],
]

const BROKER_KINDS = ['mesh', 'nats', 'rabbitmq', 'redis']
/** A change of more tests than these goes through all of the code: only turns decide. */
const MAX_CHANGED_TESTS = 4

/**
 * The files that `npm test` leaves out on this commit, those that it runs of each list, and the turn for the parts of a
 * file (`test/in-turn.ts`), which is another number: each part of each file has its turn. A test that the commit or the
 * working tree changes is not left out; of a list, one of the broker whose code they change comes first.
 * @param {{ readonly hash: string, readonly changed: readonly string[] }} [commit]
 * @returns {{ readonly left: readonly string[], readonly chosen: readonly string[], readonly turn: string }}
 */
export function shortScope({ hash, changed } = thisCommit()) {
  const [turn, part] = [0, 8].map((at) => Number.parseInt(hash.slice(at, at + 8), 16))
  const kinds = BROKER_KINDS.filter((kind) =>
    changed.some((file) => new RegExp(`packages/(broker-|.*/brokers/)${kind}/`).test(file)),
  )
  const chosen = IN_TURNS.map((files) => {
    const own = files.filter((file) => kinds.some((kind) => file.includes(kind)))
    const some = own.length > 0 ? own : files
    return some[turn % some.length]
  })
  const all = [...ONLY_ALL, ...IN_TURNS.flat()]
  const changedTests = all.filter((file) => changed.includes(file) && !chosen.includes(file))
  const played = changedTests.length > MAX_CHANGED_TESTS ? chosen : [...chosen, ...changedTests]
  return { left: all.filter((file) => !played.includes(file)), chosen: played, turn: String(part) }
}

/** Its hash, and what it and the working tree change. A clone without the commit before it knows only the latter. */
function thisCommit() {
  const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  const [hash, parent] = git('log', '-1', '--format=%H %P').split(' ')
  const isKnown = parent !== undefined && spawnSync('git', ['cat-file', '-e', parent], { cwd: ROOT }).status === 0
  const changed = git('diff', '--name-only', isKnown ? parent : 'HEAD')
  const added = git('ls-files', '--others', '--exclude-standard')
  return { hash, changed: `${changed}\n${added}`.split('\n').filter((file) => file !== '') }
}
