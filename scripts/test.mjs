// `npm test`: builds, gets what the tests need, runs every runner, and counts them together in the last line.
import { beginBuildForTests, TEST_PROGRAMS } from './lib/build.mjs'
import { findChromium } from './lib/chromium.mjs'
import { printCounts, runAutobahn, runCargoTests, runLint, runVitest } from './lib/runners.mjs'
import { findServices } from './lib/services.mjs'
import { runScript, sideBySide, step } from './lib/steps.mjs'

await runScript(async () => {
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
        runVitest({ ...process.env, ...TEST_PROGRAMS, WEBMQ_TEST_CHROMIUM: chromium }),
      ),
    ),
    compiled.then(async () => {
      const lintCount = await step('Checking format, lint, types and the dependency rule', runLint)
      await built
      // Both wait much of their time.
      return [
        lintCount,
        ...(await sideBySide(
          step('Running the Rust tests', runCargoTests),
          step('Running the Autobahn WebSocket suite', runAutobahn),
        )),
      ]
    }),
  )
  printCounts([...others, vitest])
})
