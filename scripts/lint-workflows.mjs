// Checks .github/workflows with actionlint: the one on PATH, or Go builds it once into .cache/. Without both it says so.
// `--no-build`: only with one that is there.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { must, print, ROOT, run, runScript } from './lib/steps.mjs'

const VERSION = 'v1.7.12'

await runScript(async () => {
  const actionlint = await findActionlint()
  if (actionlint === undefined) {
    print(
      'workflows: skipped, there is no actionlint; node scripts/lint-workflows.mjs builds it where Go is: https://go.dev/dl',
    )
    return
  }
  await must('The workflows have mistakes.', actionlint, ['-color'], { log: 'actionlint', show: true })
  print('workflows: actionlint found nothing')
})

async function findActionlint() {
  const installed = await run('actionlint', ['-version'], { log: 'actionlint-version' })
  if (installed.exitCode === 0) return 'actionlint'
  const folder = path.join(ROOT, '.cache', `actionlint-${VERSION}`)
  const built = path.join(folder, 'actionlint')
  if (existsSync(built)) return built
  if (process.argv.includes('--no-build')) return undefined
  const go = await run('go', ['version'], { log: 'go-version' })
  if (go.exitCode !== 0) return undefined
  await must(
    'actionlint cannot be built.',
    'go',
    ['install', `github.com/rhysd/actionlint/cmd/actionlint@${VERSION}`],
    {
      log: 'actionlint-build',
      env: { ...process.env, GOBIN: folder },
    },
  )
  return built
}
