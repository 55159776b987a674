// What `npm test` leaves to `npm run test:all`: tests that take long and rarely tell more. Some of them take turns, by
// commit, so that a few days of commits run all of them.
import { execFileSync } from 'node:child_process'
import { ROOT } from './steps.mjs'

/**
 * Only with `npm run test:all`: plays of the bench but two, most damages of logs, the packages as users install them, two
 * versions side by side, defects that are put in again, 100,000 rows of a database, the heap after 20,000 names at each door, the
 * checker's long play, a minute of comings and goings, the clients of all languages while connections are cut, the
 * packages for Python and Go, the client in other runtimes, the site, the commands of the docs,
 * the Helm chart.
 */
const ONLY_ALL = [
  ...['auction', 'benchmark', 'deployment', 'fleet', 'history', 'played-clients', 'scenarios'].map(
    (name) => `packages/bench/test/${name}.test.ts`,
  ),
  ...['nats', 'nats-cluster', 'rabbitmq', 'redis', 'redis-cluster'].map(
    (name) => `packages/server/test/brokers/damaged-log-${name}.test.ts`,
  ),
  'packages/server/test/brokers/outbox-100k.test.ts',
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
]

/** Of each list, `npm test` runs one file. */
const IN_TURNS = [
  ['memory', 'mesh', 'nats', 'rabbitmq', 'redis'].map((name) => `test/history/${name}.test.ts`),
  ['memory', 'nats', 'rabbitmq', 'redis'].map((name) => `test/streams/${name}.test.ts`),
  ['lost-end-nats-cluster', 'lost-end-rabbitmq', 'lost-end-redis-cluster', 'redis-lost-end'].map(
    (name) => `packages/server/test/brokers/${name}.test.ts`,
  ),
  ['other-broker', 'redis-promotion'].map((name) => `packages/server/test/brokers/${name}.test.ts`),
  ['mesh', 'rabbitmq'].map((name) => `packages/server/test/brokers/${name}-faults.test.ts`),
  ['nats', 'redis'].map((name) => `packages/server/test/brokers/${name}-faults.test.ts`),
  [
    ...['streams-http', 'durable-streams/suite'],
    ...['nats', 'rabbitmq', 'redis'].map((name) => `brokers/durable-suite-${name}`),
  ].map((name) => `packages/server/test/${name}.test.ts`),
  ['native-threads', 'ten-thousand'].map((name) => `packages/server/test/transports/${name}.test.ts`),
  ['reading', 'writing'].map((name) => `packages/server/test/texts/${name}.test.ts`),
  ['packages/server/test/transports/ws.test.ts', 'packages/transport-uws/test/conformance.test.ts'],
  ['history-change', 'presence'].map((name) => `packages/server/test/brokers/${name}.test.ts`),
  ['redis-broker', 'redis-cluster'].map((name) => `packages/server/test/brokers/${name}.test.ts`),
  ['behind', 'stopping'].map((name) => `packages/server/test/brokers/${name}.test.ts`),
  ['operators', 'refusals'].map((name) => `packages/server/test/brokers/rabbitmq-${name}.test.ts`),
  ['foreign-messages', 'foreign-texts', 'queue-groups'].map((name) => `packages/server/test/brokers/${name}.test.ts`),
  ['test/model/model.test.ts', 'test/seeded/seeded.test.ts'],
  ['nats/model', 'rabbitmq/suites', 'redis/model'].map((name) => `test/seeded/wire/${name}.test.ts`),
  ['packages/server/test/brokers/durable-nodes.test.ts', 'test/queue-groups.test.ts'],
  ['packages/check/test/judge-mutations.test.ts', 'test/release.test.ts'],
  ['test/demo.test.ts', 'test/tls.test.ts'],
  ['assistant', 'auction', 'chat', 'dashboard', 'whiteboard', 'worker'].map((name) => `test/examples/${name}.test.ts`),
]

/**
 * The files that `npm test` leaves out on this commit, those that it runs of each list, and the turn for the parts of a
 * file (`test/in-turn.ts`), which is another number: each part of each file has its turn.
 * @returns {{ readonly left: readonly string[], readonly chosen: readonly string[], readonly turn: string }}
 */
export function shortScope() {
  const hash = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' })
  const [turn, part] = [0, 8].map((at) => Number.parseInt(hash.slice(at, at + 8), 16))
  const chosen = IN_TURNS.map((files) => files[turn % files.length])
  const left = [...ONLY_ALL, ...IN_TURNS.flat().filter((file) => !chosen.includes(file))]
  return { left, chosen, turn: String(part) }
}
