// `npm run docs:versions`: writes the tables of docs/{guarantees,brokers}.md from docs/versions.json; `--check` compares.
// `npm run test:all -- --brokers all` plays, and writes the rows of that file.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { print, runScript, StepError } from './lib/steps.mjs'
import { readRows, VERSION_PAGES, withVersions } from './lib/version-rows.mjs'

await runScript(async () => {
  const rows = readRows()
  for (const page of VERSION_PAGES) {
    const text = readFileSync(page, 'utf8')
    const written = withVersions(text, rows)
    if (written === text) continue
    if (process.argv.includes('--check'))
      throw new StepError(`${path.basename(page)} differs from docs/versions.json: npm run docs:versions`)
    writeFileSync(page, written)
  }
  print(`${rows.length} rows of docs/versions.json are in the pages`)
})
