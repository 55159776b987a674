// `npm run test:churn`: fifteen minutes of comings and goings with each broker, after which nothing may be left.
// `npm run test:churn -- --help` lists the options.
import { build } from './lib/build.mjs'
import { runBundled } from './lib/run-bundled.mjs'
import { findServices } from './lib/services.mjs'
import { runScript, step } from './lib/steps.mjs'

await runScript(async () => {
  const args = process.argv.slice(2)
  if (!args.includes('--help')) {
    await build()
    await step('Looking for RabbitMQ, Redis and NATS', findServices)
  }
  await runBundled('churn', args)
})
