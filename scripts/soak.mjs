// The plays that take longer than `npm test`, by name: `node scripts/soak.mjs hostile`. What follows the name goes to the
// play: to vitest, as in `npm run test:soak -- test/history/redis.test.ts -t 'killed'`, or to the program of the play,
// whose options `--help` lists.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build as bundle } from 'esbuild'
import { build } from './lib/build.mjs'
import { printCounts, runVitest } from './lib/runners.mjs'
import { findServices } from './lib/services.mjs'
import { ROOT, runScript, StepError, step } from './lib/steps.mjs'

const PLAYS = {
  /** `npm run test:soak`: all random schedules of test/history and all faults of the brokers; `npm test` plays a part. */
  schedules: (asked) => {
    const projects = ['--project', 'end-to-end', '--project', 'brokers']
    const args = [...projects, ...(asked.length > 0 ? asked : ['test/history/', 'test/checker/', 'faults.test.ts'])]
    return playTests('Playing the random schedules', args, { WEBMQ_TEST_RUNS: '100', ...process.env })
  },
  /** `npm run test:hostile`: every case of the catalogue of hostile clients beside 990 honest ones, about ten minutes. */
  hostile: (asked) => {
    const args = ['--project', 'end-to-end', 'test/hostile/hostile.test.ts', ...asked]
    return playTests('Playing the hostile clients', args, { ...process.env, WEBMQ_TEST_HOSTILE: 'all' })
  },
  /** `npm run test:doors`: an hour of random traffic through all doors of nodes with every broker, odd texts among it. */
  doors: (asked) => runMain('traffic', asked),
  /** `npm run test:churn`: fifteen minutes of comings and goings with each broker, after which nothing may be left. */
  churn: (asked) => runMain('churn', asked),
  /** `npm run test:deploys`: two hours of half the load that nodes take, with a deploy every ten minutes, with each broker. */
  deploys: (asked) => runMain('deploys', asked),
  /** `npm run check:outside`: random schedules of faults against real nodes and brokers, and a judge of what clients saw. */
  checker: (asked) => runMain('checker', asked),
}

await runScript(async () => {
  const [name = '', ...asked] = process.argv.slice(2)
  if (!Object.hasOwn(PLAYS, name)) throw new StepError(`There is no play ${name}: ${Object.keys(PLAYS).join(', ')}`)
  if (!asked.includes('--help')) {
    await build()
    await step('Looking for RabbitMQ, Redis, NATS, PostgreSQL, HAProxy and toxiproxy', findServices)
  }
  await PLAYS[name](asked)
})

async function playTests(title, args, env) {
  printCounts([await step(title, () => runVitest(env, args))])
}

/** Runs `main` of `test/<name>/main.ts` with these arguments, and ends the process with its code. */
async function runMain(name, args) {
  const outfile = path.join(ROOT, '.cache', `${name}.mjs`)
  const entryPoints = [path.join(ROOT, 'test', name, 'main.ts')]
  await bundle({ entryPoints, outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' })
  process.chdir(ROOT)
  const { main } = await import(pathToFileURL(outfile).href)
  const code = await main(args)
  // Without a number Node ends with 0, whatever the play has found.
  if (!Number.isInteger(code)) throw new Error(`the play ${name} does not say how it ended`)
  // Node 20 does not end by itself after sockets were reset: it waits for their handles for ever.
  process.exit(code)
}
