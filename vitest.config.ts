import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './scripts/lib/longest-first.ts'

const source = (file: string) => fileURLToPath(new URL(`packages/${file}`, import.meta.url))

/** The suites test the sources, and see the same ports as they do. */
const resolve = {
  alias: {
    'webmq-broker-redis': source('broker-redis/src/index.ts'),
    'webmq-broker-rabbitmq': source('broker-rabbitmq/src/index.ts'),
    'webmq-broker-nats': source('broker-nats/src/index.ts'),
    'webmq-outbox-postgres': source('outbox-postgres/src/index.ts'),
    'webmq-conformance': source('conformance/src/index.ts'),
    'webmq-server/brokers': source('server/src/adapters/brokers/index.ts'),
    'webmq-server/outbox': source('server/src/features/outbox/index.ts'),
    'webmq-server/ports': source('server/src/kernel/ports/index.ts'),
    'webmq-server/transports': source('server/src/adapters/transports/index.ts'),
    'webmq-transport-uws': source('transport-uws/src/index.ts'),
  },
}

/** Factor for the time limits of the tests. An emulated processor needs ten. */
const PATIENCE = Number(process.env.WEBMQ_TEST_PATIENCE ?? 1)

/** Files that `npm test` leaves to `npm run test:all`: `scripts/lib/test-scope.mjs`. */
const LEFT = (process.env.WEBMQ_TEST_LEFT ?? '').split(',').filter((file) => file !== '')
const leftIn = (folder: string) =>
  LEFT.filter((file) => file.startsWith(folder)).map((file) => file.slice(folder.length))

/**
 * All files are one group: a worker that waits for a broker, a fault or a heartbeat leaves its core to one that computes.
 * Unit tests wait half of their time, too. Six keep two cores busy.
 */
const WORKERS = { maxWorkers: Math.max(5, availableParallelism()) }
/**
 * For tests that hang. No test has a shorter one, unless its time is what it claims: five files and a build share two
 * cores, on which a second of work takes ten.
 */
const LIMITS = { testTimeout: 180_000 * PATIENCE, hookTimeout: 180_000 * PATIENCE }

/** The files of a worker share their modules, which saves half of the CPU time of unit tests. */
const UNITS = { include: ['src/**/*.test.ts'] }
/** It tests what a page does once. */
const ALONE = 'src/dev/checks/refusals.test.ts'
/** Tests of a broker. */
const BROKERS = 'test/brokers/**/*.test.ts'
/** Tests from outside: with sockets, processes, and in the bench with windows that they wait for. */
const PLAYS = 'test/**/*.test.ts'

/** Server and clients in one process, on a clock of their own. */
const SEEDED = 'test/seeded/**/*.test.ts'

/** How long a test waits for a state that must come. The tests' own times are the longer ones. */
const WAITS = {
  setupFiles: [fileURLToPath(new URL('test/patience.ts', import.meta.url))],
  expect: { poll: { timeout: 20_000 * PATIENCE } },
}

const project = (name: string) => ({
  resolve,
  test: {
    ...WAITS,
    isolate: false,
    ...WORKERS,
    name,
    root: `packages/${name}`,
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [BROKERS, ...leftIn(`packages/${name}/`)],
    ...LIMITS,
  },
})

/** The tests ask for texts. `checks.test.ts` tries a page for production. */
const ofClient = { ...project('client').test, setupFiles: [...WAITS.setupFiles, source('client/src/development.ts')] }
const { test: ofServer } = project('server')
const { test: ofServices } = project('services')
const ofBrokers = ['nats', 'rabbitmq', 'redis'].map((name) => project(`broker-${name}`))
const { test: ofOutbox } = project('outbox-postgres')
const { test: ofBench } = project('bench')

export default defineConfig({
  test: {
    globalSetup: ['test/services-setup.ts'],
    sequence: { sequencer: LongestFirst },
    // A fifth of the CPU time of unit tests, once the modules are there.
    experimental: { fsModuleCache: true },
    projects: [
      { resolve, test: { ...ofClient, ...UNITS, exclude: [ALONE] } },
      { resolve, test: { ...ofClient, name: 'client-alone', include: [ALONE, PLAYS], isolate: true } },
      { resolve, test: { ...ofServer, ...UNITS } },
      { resolve, test: { ...ofServer, name: 'server-plays', include: [PLAYS] } },
      project('native'),
      project('transport-uws'),
      ...ofBrokers,
      { resolve, test: ofOutbox },
      project('check'),
      { resolve, test: { ...ofBench, ...UNITS } },
      { resolve, test: { ...ofBench, name: 'bench-plays', include: [PLAYS] } },
      // A library of theirs looks for a container runtime once per process, and one test shows it a stand-in.
      { resolve, test: { ...ofServices, isolate: true } },
      {
        resolve,
        test: { ...ofServer, name: 'brokers', include: [BROKERS], exclude: leftIn('packages/server/') },
      },
      // It replaces clock, chance and sockets of its process.
      {
        resolve,
        test: {
          ...WAITS,
          ...WORKERS,
          isolate: true,
          name: 'seeded',
          include: [SEEDED],
          exclude: leftIn(''),
          testTimeout: 600_000,
        },
      },
      {
        resolve,
        test: {
          ...WAITS,
          ...WORKERS,
          ...LIMITS,
          isolate: false,
          name: 'end-to-end',
          include: ['test/**/*.test.ts'],
          exclude: [...leftIn(''), SEEDED],
        },
      },
    ],
  },
})
