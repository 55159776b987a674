// Publishes every public package that the registry does not have in this version. Safe to run again after a failure.
// The release workflow runs it with all platforms built. The bills of materials come into .cache/sbom. Arguments:
//   --dry-run   makes the packages in .cache/release and lists them
//   --tag NAME  distribution tag, `latest` without
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { print, ROOT, runScript, step } from '../lib/steps.mjs'
import { publishStaged } from './publish-staged.mjs'
import { sbomsOf } from './sbom.mjs'
import { stageRelease } from './stage.mjs'

await runScript(async () => {
  const { values } = parseArgs({
    options: { 'dry-run': { type: 'boolean', default: false }, tag: { type: 'string', default: 'latest' } },
  })
  const isDryRun = values['dry-run']
  const folder = path.join(ROOT, '.cache', 'release')
  const staged = await step('Making the packages', async () => stageRelease({ folder, isRelease: !isDryRun }))
  writeSboms(staged)
  if (!isDryRun) return await publishStaged(staged, { tag: values.tag })
  for (const { name, version, folder } of staged) print(`  ${name}@${version} in ${path.relative(ROOT, folder)}`)
})

function writeSboms(staged) {
  const folder = path.join(ROOT, '.cache', 'sbom')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [name, sbom] of sbomsOf(staged)) {
    writeFileSync(path.join(folder, `${name}.cdx.json`), `${JSON.stringify(sbom, undefined, 2)}\n`)
  }
}
