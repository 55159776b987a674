// `npm run test:doors`: an hour of random traffic through all doors of nodes with every broker, odd texts among it.
// `npm run test:doors -- --help` lists the options.
import { build } from './lib/build.mjs'
import { runBundled } from './lib/run-bundled.mjs'
import { findServices } from './lib/services.mjs'
import { runScript, step } from './lib/steps.mjs'

await runScript(async () => {
  const args = process.argv.slice(2)
  if (!args.includes('--help')) {
    await build()
    await step('Looking for RabbitMQ, Redis, NATS and PostgreSQL', findServices)
  }
  await runBundled('traffic', args)
})
