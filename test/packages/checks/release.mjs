import path from 'node:path'
import { readerOf } from '../../docs/readers.mjs'

const { code } = readerOf('test/packages/checks/release.mjs').exampleOf('releasing.md', 'undo')
/** Without the first command, which makes the packages: test/release.test.ts runs it. */
const UNDO = code.slice(code.indexOf('\n'))

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
      await project.run('sh', '-ec', UNDO.replaceAll('1.2.2', before).replaceAll('1.2.3', bad))
      for (const { name } of staged) {
        const latest = (await project.run('npm', 'view', name, 'dist-tags.latest')).trim()
        if (latest !== before) throw new Error(`${name} is ${latest}, not ${before}`)
      }
      const reason = await project.run('npm', 'view', `webmq-server@${bad}`, 'deprecated')
      if (!reason.includes('Loses messages')) throw new Error(`webmq-server@${bad} is not deprecated: ${reason}`)
    },
  },
]
