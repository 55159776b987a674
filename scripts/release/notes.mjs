// Prints what CHANGELOG.md says of a version: node scripts/release/notes.mjs 1.2.3
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { print, ROOT, runScript, StepError } from '../lib/steps.mjs'
import { partOf } from './changelog.mjs'

await runScript(async () => {
  const [version = ''] = process.argv.slice(2)
  const part = partOf(readFileSync(path.join(ROOT, 'CHANGELOG.md'), 'utf8'), version)
  if (!part) throw new StepError(`CHANGELOG.md says nothing of ${version}.`)
  print(part)
})
