// What `npm test` leaves to `npm run test:all`: tests that take long and rarely tell more. Some of them take turns, by
// commit, so that a few days of commits run all of them; a change has its turn first.
import { execFileSync, spawnSync } from 'node:child_process'
import { ROOT } from './steps.mjs'

/**
 * Only with `npm run test:all`: plays of the bench but two, most damages of logs, the packages as users install them, two
 * versions side by side, defects that are put in again, 100,000 rows of a database, the heap after 20,000 names at each door and in
 * each cache, ten thousand connections, the checker's long play, a minute of comings and goings, the clients of all languages while connections are cut, the
 * packages for Python and Go, the client in other runtimes, the site, the commands of the docs,
 * the Helm chart, an installation from an empty folder, and a Prometheus that scrapes a node in each state.
 */
const ONLY_ALL = [
  ...['auction', 'benchmark', 'deployment', 'drops', 'fleet', 'history', 'played-clients', 'scenarios'].map(
    (name) => `packages/bench/test/${name}.test.ts`,
  ),
  ...['nats', 'nats-cluster', 'rabbitmq', 'redis', 'redis-cluster'].map(
    (name) => `packages/server/test/brokers/damaged-log-${name}.test.ts`,
  ),
  'packages/server/test/brokers/outbox-100k.test.ts',
  'packages/server/test/memory-of-caches.test.ts',
  'packages/server/test/memory-of-doors.test.ts',
  'packages/server/test/transports/ten-thousand.test.ts',
  'test/packages.test.ts',
  'test/clients/cuts.test.ts',
  'test/clients/go-package.test.ts',
  'test/clients/python-package.test.ts',
  'test/clients/runtimes.test.ts',
  'test/checker/checker.test.ts',
  'test/churn/churn.test.ts',
  'test/deploys/deploys.test.ts',
  'test/deploy/helm.test.ts',
  'test/deploy/production.test.ts',
  'test/docs/shell.test.ts',
  'test/seeded/mutants.test.ts',
  'test/site/site.test.ts',
  'test/skew/skew.test.ts',
  'test/states/prometheus.test.ts',
]

/** As long as all others together: not with a change either. */
const TOO_LONG = ['test/seeded/mutants.test.ts']

const brokers = (...names) => names.map((name) => `packages/server/test/brokers/${name}.test.ts`)
const server = (...names) => names.map((name) => `packages/server/test/${name}.test.ts`)
const endToEnd = (...names) => names.map((name) => `test/${name}.test.ts`)

/**
 * Of each list, `npm test` runs one file. Those of a list prove something alike, or start the same costly program; what
 * they promise is also shown by tests that run each time. A commit plays one file that restarts brokers, one that cuts
 * them off, one with random schedules on real brokers, one with virtual ones, and two with pages in Chromium.
 */
const IN_TURNS = [
  [
    ...endToEnd('history/memory', 'streams/nats', 'history/mesh', 'streams/memory', 'history/nats'),
    ...endToEnd('streams/rabbitmq', 'history/redis', 'streams/redis', 'history/rabbitmq'),
  ],
  endToEnd('history/slow-listener', 'history/slow-patterns'),
  [
    ...brokers('lost-end-rabbitmq', 'redis-lost-end', 'rabbitmq-operators', 'lost-end-nats-cluster'),
    ...brokers('rabbitmq-faults', 'lost-end-redis-cluster', 'rabbitmq-lost-stream', 'rabbitmq-tls'),
  ],
  brokers('nats-faults', 'mesh-faults', 'other-broker', 'redis-faults', 'outbox-faults', 'redis-promotion'),
  brokers('nats-broker', 'rabbitmq-broker'),
  brokers('redis-broker', 'redis-cluster'),
  brokers('nats-log', 'rabbitmq-log', 'redis-log'),
  ['access', 'outbox'].map((name) => `packages/outbox-postgres/test/${name}.test.ts`),
  [...brokers('presence', 'durable-nodes', 'history-change'), 'test/queue-groups.test.ts'],
  brokers('behind', 'stopping', 'rabbitmq-refusals'),
  brokers('foreign-messages', 'foreign-texts', 'queue-groups'),
  [
    ...server('streams-http', 'durable-streams/suite'),
    ...brokers('durable-suite-nats', 'durable-suite-rabbitmq', 'durable-suite-redis'),
  ],
  server('transports/native-flood', 'transports/native-threads'),
  [...server('transports/ws'), 'packages/transport-uws/test/conformance.test.ts'],
  server('texts/reading', 'texts/writing'),
  server('bad-input', 'hostile', 'http-api-hostile'),
  ['load-balancer', 'services', 'versions'].map((name) => `packages/services/test/${name}.test.ts`),
  [...endToEnd('clients/conformance', 'docs/compile', 'docs/recipes'), 'packages/client/test/typed-parts.test.ts'],
  endToEnd(
    ...['model/model', 'seeded/seeded', 'seeded/wire/nats/model', 'seeded/wire/rabbitmq/suites'],
    'seeded/wire/redis/model',
  ),
  endToEnd('checker/cli', 'checker/clients', 'checker/elsewhere'),
  ['packages/check/test/judge-mutations.test.ts', 'test/release.test.ts'],
  endToEnd('admin', 'demo', 'tls', 'browser/flow'),
  [
    ...endToEnd('devtools', 'vite-plugin'),
    ...['assistant', 'auction', 'chat', 'dashboard', 'whiteboard', 'worker'].map(
      (name) => `test/examples/${name}.test.ts`,
    ),
  ],
]

/** What a change of this code is about: of a list, these come first, as those of a broker do when its code changes. */
const CONCERNED = [
  [/^clients\//, endToEnd('clients/conformance')],
  [/^docs\/client\/recipes\.md$/, endToEnd('docs/recipes')],
  [/^(docs|packages\/\w+\/README)\b.*\.md$/, endToEnd('docs/compile')],
  [/^packages\/client\/src\/(core\/(types|topics)|parts|frameworks)\b/, ['packages/client/test/typed-parts.test.ts']],
  [/^packages\/client\/src\/parts\/(tabs|outbox)\//, endToEnd('browser/flow')],
  [/^packages\/server\/admin\//, endToEnd('admin')],
  [/^packages\/server\/demo\//, endToEnd('demo')],
  [/^packages\/services\/src\//, ['packages/services/test/services.test.ts']],
]

/** What the tests and lint of Rust and Autobahn's suite are about. */
const RUST = [
  ...['packages/native', 'packages/bench/loadgen', 'deny.toml', 'test/autobahn'],
  'packages/server/src/adapters/transports',
]
/** More than anybody lands at once. */
const RECENT_COMMIT_COUNT = 20
/** One commit in so many plays them though nothing has changed: some are random. */
const RUST_TURNS = 8

/**
 * Whether to play what is about Rust: where it has changed in the working tree or in the last commits, where that cannot be
 * known, and in its turn.
 * @param {string} turn that of {@link shortScope}
 */
export function playsRust(turn) {
  if (Number(turn) % RUST_TURNS === 0) return true
  const { status } = spawnSync('git', ['diff', '--quiet', `HEAD~${RECENT_COMMIT_COUNT}`, '--', ...RUST], { cwd: ROOT })
  return status !== 0
}

const BROKER_KINDS = ['mesh', 'nats', 'rabbitmq', 'redis']
/** A change of more tests than these goes through all of the code: only turns decide. */
const MAX_CHANGED_TESTS = 4

/**
 * The files that `npm test` leaves out on this commit, those that it runs of each list, and the turn for the parts of a
 * file (`test/in-turn.ts`), which is another number: each part of each file has its turn. A test that the commit or the
 * working tree changes is not left out; of a list, one that the changed code concerns comes first.
 * @param {{ readonly hash: string, readonly changed: readonly string[] }} [commit]
 * @returns {{ readonly left: readonly string[], readonly chosen: readonly string[], readonly turn: string }}
 */
export function shortScope({ hash, changed } = thisCommit()) {
  const [turn, part] = [0, 8].map((at) => Number.parseInt(hash.slice(at, at + 8), 16))
  const kinds = BROKER_KINDS.filter((kind) =>
    changed.some((file) => new RegExp(`packages/(broker-|.*/brokers/)${kind}/`).test(file)),
  )
  const concerned = CONCERNED.filter(([code]) => changed.some((file) => code.test(file))).flatMap(([, files]) => files)
  const chosen = IN_TURNS.map((files) => {
    const own = files.filter((file) => concerned.includes(file) || kinds.some((kind) => file.includes(kind)))
    const some = own.length > 0 ? own : files
    return some[turn % some.length]
  })
  const all = [...ONLY_ALL, ...IN_TURNS.flat()]
  const changedTests = all.filter(
    (file) => changed.includes(file) && !chosen.includes(file) && !TOO_LONG.includes(file),
  )
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
