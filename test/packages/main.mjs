// `npm run test:packages`: publishes the packages to a registry on this machine and uses them as a user would, on several
// versions of Node. Build first. Arguments after `--`:
//   --fast       the checks that are part of `npm test`
//   --only TEXT  checks whose name has this
//   --json FILE  writes the results
//   --document   writes the tables of docs/releasing.md anew
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { print, ROOT, runScript } from '../../scripts/lib/steps.mjs'
import { dryRun } from './dry-run.mjs'
import { withTables } from './tables.mjs'

await runScript(async () => {
  const { values } = parseArgs({
    options: {
      fast: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      json: { type: 'string' },
      document: { type: 'boolean', default: false },
    },
  })
  const only = new RegExp(values.only.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const outcome = await dryRun({ isFast: values.fast, only, wantsSizes: !values.fast && values.only === '' })
  for (const { name, packages, bytes, seconds } of outcome.sizes) {
    const times = Object.entries(seconds).map(([manager, time]) => `${manager} ${time.toFixed(1)} s`)
    print(`  ${name}: ${packages} packages, ${(bytes / 1e6).toFixed(1)} MB, ${times.join(', ')}`)
  }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(outcome, undefined, 2))
  if (values.document) {
    const document = path.join(ROOT, 'docs', 'releasing.md')
    writeFileSync(document, withTables(readFileSync(document, 'utf8'), outcome))
  }
  const count = (state) => outcome.results.filter((result) => result.state === state).length
  print(`\n${count('pass')} passed, ${count('FAIL')} failed, ${count('skip')} skipped`)
  if (count('FAIL') > 0 || count('pass') === 0) process.exitCode = 1
})
