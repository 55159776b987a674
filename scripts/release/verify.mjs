// Verifies a release as docs/releasing.md says, in an empty folder: node scripts/release/verify.mjs 1.2.3
// It needs npm, cosign and gh.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { must, ROOT, runScript, StepError, step } from '../lib/steps.mjs'

const BLOCK = /<!-- run: verify -->\n(?:<!--.*-->\n)*```sh\n(?<commands>.*?)^```$/ms

await runScript(async () => {
  const [version = ''] = process.argv.slice(2)
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) throw new StepError(`${version || 'Nothing'} is no version.`)
  const page = readFileSync(path.join(ROOT, 'docs', 'releasing.md'), 'utf8')
  const commands = BLOCK.exec(page)?.groups.commands.replaceAll('1.2.3', version)
  if (commands === undefined) throw new StepError('docs/releasing.md has no block named verify.')
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-verify-'))
  try {
    await step(`Verifying ${version}`, () =>
      must(`${version} is not what it should be.`, 'bash', ['-euxc', commands], {
        cwd: folder,
        log: 'verify',
        show: true,
      }),
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})
