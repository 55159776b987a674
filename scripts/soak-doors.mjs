// `npm run test:doors`: an hour of random traffic through all doors of nodes with every broker, odd texts among it.
// `npm run test:doors -- --help` lists the options.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build as bundle } from 'esbuild'
import { build } from './lib/build.mjs'
import { findServices } from './lib/services.mjs'
import { ROOT, runScript, step } from './lib/steps.mjs'

await runScript(async () => {
  const args = process.argv.slice(2)
  if (!args.includes('--help')) {
    await build()
    await step('Looking for RabbitMQ, Redis, NATS and PostgreSQL', findServices)
  }
  const outfile = path.join(ROOT, '.cache', 'doors.mjs')
  const entryPoints = [path.join(ROOT, 'test', 'traffic', 'main.ts')]
  await bundle({ entryPoints, outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' })
  process.chdir(ROOT)
  const { main } = await import(pathToFileURL(outfile).href)
  const code = await main(args)
  // Node 20 does not end by itself after sockets were reset: it waits for their handles for ever.
  process.exit(code)
})
