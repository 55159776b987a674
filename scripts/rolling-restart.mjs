// `node scripts/rolling-restart.mjs`: restarts three nodes behind HAProxy one after the other under load, and prints what
// clients saw. `--svg FILE` plots it: docs/images/rolling-restart.svg. It takes Redis and HAProxy as the tests do.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build as bundle } from 'esbuild'
import { build } from './lib/build.mjs'
import { ROOT, runScript } from './lib/steps.mjs'

await runScript(async () => {
  await build()
  const outfile = path.join(ROOT, '.cache', 'rolling-restart.mjs')
  const entryPoints = [path.join(ROOT, 'test', 'rolling', 'main.ts')]
  await bundle({
    entryPoints,
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
  })
  process.chdir(ROOT)
  const { main } = await import(pathToFileURL(outfile).href)
  await main(process.argv.slice(2))
  // Node 20 does not end by itself after sockets were reset: it waits for their handles for ever.
  process.exit()
})
