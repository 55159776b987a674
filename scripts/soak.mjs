// `npm run test:soak`: all random schedules of test/history and all faults of the brokers; `npm test` plays a part of them.
// Everything after `--` goes to vitest: `npm run test:soak -- test/history/redis.test.ts -t 'killed'`.
import { build } from './lib/build.mjs'
import { printCounts, runVitest } from './lib/runners.mjs'
import { findServices } from './lib/services.mjs'
import { runScript, step } from './lib/steps.mjs'

const DEFAULT_RUNS = '100'

await runScript(async () => {
  await build()
  await step('Looking for RabbitMQ, Redis, NATS, HAProxy and toxiproxy', findServices)
  const asked = process.argv.slice(2)
  const projects = ['--project', 'end-to-end', '--project', 'brokers']
  const args = [...projects, ...(asked.length > 0 ? asked : ['test/history/', 'test/checker/', 'faults.test.ts'])]
  const env = { WEBMQ_TEST_RUNS: DEFAULT_RUNS, ...process.env }
  printCounts([await step('Playing the random schedules', () => runVitest(env, args))])
})
