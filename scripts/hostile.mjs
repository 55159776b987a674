// `npm run test:hostile`: every case of the catalogue of hostile clients beside 990 honest ones, about ten minutes.
// Everything after `--` goes to vitest: `npm run test:hostile -- -t 'search-reads'`.
import { build } from './lib/build.mjs'
import { printCounts, runVitest } from './lib/runners.mjs'
import { runScript, step } from './lib/steps.mjs'

await runScript(async () => {
  await build()
  const args = ['--project', 'end-to-end', 'test/hostile/hostile.test.ts', ...process.argv.slice(2)]
  const env = { ...process.env, WEBMQ_TEST_HOSTILE: 'all' }
  printCounts([await step('Playing the hostile clients', () => runVitest(env, args))])
})
