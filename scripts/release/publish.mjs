// Publishes every public package that the registry does not have in this version. Safe to run again after a failure.
// The release workflow runs it with all platforms built. Arguments:
//   --dry-run   makes the packages in .cache/release and lists them
//   --tag NAME  distribution tag, `latest` without
import path from 'node:path'
import { parseArgs } from 'node:util'
import { must, print, ROOT, run, runScript, StepError, step } from '../lib/steps.mjs'
import { stageRelease } from './stage.mjs'

await runScript(async () => {
  const { values } = parseArgs({
    options: { 'dry-run': { type: 'boolean', default: false }, tag: { type: 'string', default: 'latest' } },
  })
  const isDryRun = values['dry-run']
  const folder = path.join(ROOT, '.cache', 'release')
  const staged = await step('Making the packages', async () => stageRelease({ folder, isRelease: !isDryRun }))
  for (const each of staged) {
    const id = `${each.name}@${each.version}`
    if (isDryRun) print(`  ${id} in ${path.relative(ROOT, each.folder)}`)
    else if (await isPublished(id)) print(`  ${id} is published already`)
    else await step(`Publishing ${id}`, () => publish(each, values.tag))
  }
})

async function isPublished(id) {
  const { exitCode, output } = await run('npm', ['view', id, 'version', '--json'], { log: 'npm-view' })
  if (exitCode === 0) return output.trim() !== ''
  if (/E404/.test(output)) return false
  throw new StepError(`npm cannot tell whether ${id} is published:\n${output}`)
}

/** With trusted publishing npm takes no token: it proves to the registry which workflow it runs in. */
async function publish({ name, folder }, tag) {
  const provenance = process.env.GITHUB_ACTIONS === 'true' ? ['--provenance'] : []
  const args = ['publish', folder, '--access', 'public', '--tag', tag, '--ignore-scripts', ...provenance]
  await must(`${name} was not published.`, 'npm', args, { log: `publish-${name}` })
}
