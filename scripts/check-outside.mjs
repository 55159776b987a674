// `npm run check:outside`: plays random schedules of faults against real nodes and brokers, and judges what clients saw.
// `npm run check:outside -- --help` lists the options.
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
    await step('Looking for RabbitMQ, Redis, NATS, HAProxy and toxiproxy', findServices)
  }
  const outfile = path.join(ROOT, '.cache', 'checker.mjs')
  const entryPoints = [path.join(ROOT, 'test', 'checker', 'main.ts')]
  await bundle({ entryPoints, outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' })
  process.chdir(ROOT)
  const { main } = await import(pathToFileURL(outfile).href)
  await main(args)
  // Node 20 does not end by itself after sockets were reset: it waits for their handles for ever.
  process.exit()
})
