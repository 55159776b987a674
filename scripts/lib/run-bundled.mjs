import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build as bundle } from 'esbuild'
import { ROOT } from './steps.mjs'

/** Runs `main` of `test/<name>/main.ts` with these arguments, and ends the process with its code. */
export async function runBundled(name, args) {
  const outfile = path.join(ROOT, '.cache', `${name}.mjs`)
  const entryPoints = [path.join(ROOT, 'test', name, 'main.ts')]
  await bundle({ entryPoints, outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' })
  process.chdir(ROOT)
  const { main } = await import(pathToFileURL(outfile).href)
  const code = await main(args)
  // Node 20 does not end by itself after sockets were reset: it waits for their handles for ever.
  process.exit(code)
}
