import { must, print, run, StepError, step } from '../lib/steps.mjs'

/**
 * Publishes every package that the registry does not have in its version.
 * @param {readonly import('./stage.mjs').Staged[]} staged in this order
 * @param {{ tag: string, env?: NodeJS.ProcessEnv }} options `tag`: distribution tag. `env`: of npm, which names the
 *   registry; default: that of the process.
 */
export async function publishStaged(staged, { tag, env = process.env }) {
  for (const each of staged) {
    const id = `${each.name}@${each.version}`
    if (await isPublished(id, env)) print(`  ${id} is published already`)
    else await step(`Publishing ${id}`, () => publish(each, tag, env))
  }
}

async function isPublished(id, env) {
  const { exitCode, output } = await run('npm', ['view', id, 'version', '--json'], { log: 'npm-view', env })
  if (exitCode === 0) return output.trim() !== ''
  if (/E404/.test(output)) return false
  throw new StepError(`npm cannot tell whether ${id} is published:\n${output}`)
}

/**
 * With trusted publishing npm takes no token: it proves to the registry which workflow it runs in. Elsewhere nothing can
 * be proved, and a manifest that asks for provenance would be refused.
 */
async function publish({ name, folder }, tag, env) {
  const provenance = `--provenance=${env.GITHUB_ACTIONS === 'true'}`
  const args = ['publish', folder, '--access', 'public', '--tag', tag, '--ignore-scripts', provenance]
  await must(`${name} was not published.`, 'npm', args, { log: `publish-${name}`, env })
}
