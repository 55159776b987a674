// `npm test`: builds, gets what the tests need, runs every runner, and counts them together in the last line.
// With `--all` (`npm run test:all`) it runs the long tests too; with `--brokers`, those of versions of brokers instead.
import { parseArgs } from 'node:util'
import { beginBuildForTests, TEST_PROGRAMS } from './lib/build.mjs'
import { findChromium } from './lib/chromium.mjs'
import { printCounts, runAutobahn, runCargoTests, runLint, runMemcheck, runVitest } from './lib/runners.mjs'
import { findServices } from './lib/services.mjs'
import { print, runScript, sideBySide, step } from './lib/steps.mjs'
import { playsRust, shortScope } from './lib/test-scope.mjs'
import { HELP, playVersions } from './lib/version-series.mjs'

const { values } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    brokers: { type: 'string' },
    node: { type: 'string' },
    schedules: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '20' },
    parallel: { type: 'string', default: '4' },
    minutes: { type: 'string' },
    again: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) print(HELP)
else await runScript(values.brokers === undefined ? testAll : () => playVersions(values))

async function testAll() {
  const isAll = values.all
  const scope = isAll ? { left: [], chosen: [], turn: undefined } : shortScope()
  if (scope.left.length > 0) {
    print(
      `${scope.left.length} long files run with npm run test:all; of those that take turns: ${scope.chosen.join(' ')}; of parts of files: WEBMQ_TEST_TURN=${scope.turn}`,
    )
  }
  const withRust = isAll || playsRust(scope.turn)
  if (!withRust)
    print("the tests and lint of Rust and Autobahn's suite run when their code has changed, and in their turn")

  let chromium
  const { compiled, built } = await beginBuildForTests(async () => {
    ;[, chromium] = await sideBySide(
      step('Looking for RabbitMQ, Redis, NATS, HAProxy and toxiproxy', findServices),
      step('Looking for Chromium', findChromium),
    )
  })
  // Tests with brokers and faults mostly wait. Steps that only compute run meanwhile, at a lower priority.
  const [vitest, others] = await sideBySide(
    built.then(() =>
      step('Running the TypeScript and browser tests', () =>
        runVitest({
          ...process.env,
          ...TEST_PROGRAMS,
          WEBMQ_TEST_CHROMIUM: chromium,
          WEBMQ_TEST_LEFT: scope.left.join(),
          WEBMQ_TEST_TURN: scope.turn,
          ...(isAll ? { WEBMQ_TEST_READERS: '1000' } : undefined),
        }),
      ),
    ),
    compiled.then(async () => {
      const lintCount = await step('Checking format, lint, types and the dependency rule', () => runLint(withRust))
      await built
      if (!withRust) return [lintCount]
      // Both wait much of their time.
      const counts = await sideBySide(
        step('Running the Rust tests', runCargoTests),
        step('Running the Autobahn WebSocket suite', runAutobahn),
      )
      if (isAll) counts.push(await step('Running Rust tests under valgrind', runMemcheck))
      return [lintCount, ...counts]
    }),
  )
  printCounts([...others, vitest])
}
