// `npm test`: builds, gets what the tests need up, runs every runner, and counts them together in the last line.
import { build } from './lib/build.mjs'
import { findChromium } from './lib/chromium.mjs'
import { runAutobahn, runCargoTests, runLint, runVitest } from './lib/runners.mjs'
import { findServices } from './lib/services.mjs'
import { runScript, step } from './lib/steps.mjs'

await runScript(async () => {
  await build()
  const chromium = await step('Looking for Chromium', findChromium)
  await step(
    'Looking for RabbitMQ, Redis, NATS and toxiproxy (building it the first time takes a minute or two)',
    findServices,
  )
  const counts = [
    await step('Checking format, lint, types and the dependency rule', runLint),
    await step('Running the Rust tests', runCargoTests),
    await step('Running the TypeScript and browser tests', () =>
      runVitest({ ...process.env, WEBMQ_TEST_CHROMIUM: chromium }),
    ),
    await step('Running the Autobahn WebSocket suite', runAutobahn),
  ]
  const sum = (field) => counts.reduce((total, count) => total + count[field], 0)
  process.stdout.write('\n')
  for (const { name, passed, failed, skipped } of counts) {
    process.stdout.write(`  ${name.padEnd(10)} ${passed} passed · ${failed} failed · ${skipped} skipped\n`)
  }
  process.stdout.write(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`)
  if (sum('failed') > 0 || sum('passed') === 0) process.exitCode = 1
})
