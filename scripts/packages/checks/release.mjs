import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../lib/steps.mjs'

/** The block of docs/releasing.md without its first command, which makes the packages: test/release.test.ts runs it. */
function undoCommands() {
  const text = readFileSync(path.join(ROOT, 'docs', 'releasing.md'), 'utf8')
  const [, code] = text.match(/<!-- run: undo -->\n```sh\n(?:node .*\n)+([\s\S]*?)\n```/) ?? []
  if (code === undefined) throw new Error('docs/releasing.md has no block `undo`')
  return code
}

/**
 * It comes last: it publishes another version, and makes npm warn of it.
 * @type {import('../check.mjs').Check[]}
 */
export const releaseChecks = [
  {
    name: 'a release is undone as docs/releasing.md says',
    async run({ newProject, staged, publishNext }) {
      const [{ version: before, folder }] = staged
      const [{ version: bad }] = await publishNext()
      const project = await newProject('undo')
      project.link('.cache/release', path.dirname(folder))
      await project.run('sh', '-ec', undoCommands().replaceAll('1.2.2', before).replaceAll('1.2.3', bad))
      for (const { name } of staged) {
        const latest = (await project.run('npm', 'view', name, 'dist-tags.latest')).trim()
        if (latest !== before) throw new Error(`${name} is ${latest}, not ${before}`)
      }
      const reason = await project.run('npm', 'view', `webmq-server@${bad}`, 'deprecated')
      if (!reason.includes('Loses messages')) throw new Error(`webmq-server@${bad} is not deprecated: ${reason}`)
    },
  },
]
